/** What the tests of the guard share: routes behind it, on a real store of sessions. */
import { buildHttpApp, requires } from "@todoke/http";
import { Type } from "typebox";
import { vi } from "vitest";
import type { NewSession, UserSnapshot } from "../sessions/index.ts";
import { newSession, postgresHarness, userSnapshot } from "../sessions/testing.ts";
import { stripIdentityHeaders } from "./identity-headers.ts";
import { decorateSession, sessionGuard } from "./session-guard.ts";

export const origin = "https://play.example";

export async function setup({ isLoopback = false } = {}) {
  const stage = await postgresHarness();
  const sessions = stage.open();
  /** How often the store is asked. */
  const find = vi.fn(sessions.find);
  const onRefreshDue = vi.fn();
  const authenticate = sessionGuard({ sessions: { find }, origin, isLoopback, onRefreshDue });
  const app = await buildHttpApp({ title: "test", version: "0", log: { level: "silent" }, rules: true });
  decorateSession(app);
  stripIdentityHeaders(app);

  const player = requires(authenticate, { user: "any" });
  const changes = vi.fn();
  const hidden = { schema: { hide: true } };
  app.get("/v1/me", { ...player, ...hidden }, async ({ principal, session }) => ({ principal, session }));
  app.get("/v1/users/:user_id", { ...requires(authenticate, { user: "own" }), ...hidden }, async () => ({}));
  app.get("/v1/admin", { ...requires(authenticate, { staff: "ADMIN" }), ...hidden }, async () => ({}));
  app.post(
    "/v1/change",
    { ...player, schema: { hide: true, body: Type.Object({ name: Type.String() }) } },
    async () => {
      changes();
      return {};
    },
  );
  const leaving = { ...player, config: { ...player.config, inactiveToo: true } };
  app.post("/logout", { ...leaving, ...hidden }, async () => {
    changes();
    return {};
  });

  const name = isLoopback ? "todoke" : "__Host-todoke";
  return {
    app,
    sessions,
    pass: stage.pass,
    find,
    changes,
    onRefreshDue,
    /** A user who is known and has logged in: the token. */
    async loggedIn(user: Partial<UserSnapshot> = {}, session: Partial<NewSession> = {}): Promise<string> {
      await sessions.saveUser(userSnapshot(user));
      const about = user.userId === undefined ? {} : { userId: user.userId };
      return (await sessions.create(newSession({ ...about, ...session }))).token;
    },
    get: (headers: Record<string, string> = {}, url = "/v1/me") => app.inject({ url, headers }),
    post: (headers: Record<string, string> = {}, { url = "/v1/change", payload = `{"name":"a"}` } = {}) =>
      app.inject({ method: "POST", url, payload, headers: { "content-type": "application/json", ...headers } }),
    cookie: (token: string) => ({ cookie: `${name}=${token}` }),
    async [Symbol.asyncDispose]() {
      await app.close();
      await stage[Symbol.asyncDispose]();
    },
  };
}

/** What a page of our own sends along. */
export const ours = { origin, "x-todoke-request": "1" };
