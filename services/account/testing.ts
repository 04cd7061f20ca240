/** For tests: the service on a database of its own, users, and ways to call it. */
import { randomUUID } from "node:crypto";
import { type Authenticate, buildHttpApp, type Principal, problems, type Role } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { openOutbox } from "@todoke/kernel/outbox";
import { longTimeouts, testDatabase } from "@todoke/kernel/testing";
import { createCommands } from "./deps.ts";
import { accountRoutes } from "./routes/index.ts";
import type { UserView } from "./store/users.ts";

const own = { name: "account", dir: new URL("./migrations/", import.meta.url) };

export const provider = "https://id.example";
/** The subject of an admin of ACCOUNT_ADMINS. */
export const adminSubject = "the-admin";

/** Replaces tokens: the header holds the name of the caller and its roles in plain text. */
const authenticate: Authenticate = ({ headers }) => {
  const [, name = "", roles = ""] = /^Bearer (\S+) ?(\S*)$/.exec(headers.authorization ?? "") ?? [];
  const [kind, id = ""] = name.split(":");
  if (kind === "service") return { kind: "service", name: `service:${id}` };
  if (kind === "key") return { kind: "key", name: id, scopes: ["read", "entitlements:write"] };
  if (kind !== "user") throw problems.unauthenticated("who is calling?");
  return { kind: "user", name: `user:${id}`, userId: id, roles: roles.split(",") as Role[] };
};

/** A user who calls, with the roles in the token. */
export interface Person {
  readonly user_id: string;
  readonly roles: readonly Role[];
}

const authorizationOf = ({ user_id, roles }: Person) => `Bearer user:${user_id} ${roles.join(",")}`;

export interface Call {
  readonly as?: Person | Principal["name"];
  readonly headers?: Readonly<Record<string, string>>;
  readonly payload?: unknown;
}

export async function setup() {
  const t = await testDatabase({ schema: "account", sets: [kernelMigrations, own], pools: longTimeouts });
  const apps: { close(): Promise<unknown> }[] = [];

  /** Another process of the service. Processes share only the database. */
  async function process(db: Db = t.open()) {
    const app = await buildHttpApp({ title: "account", version: "0", log: { level: "silent" } });
    const staff = [{ provider, subject: adminSubject, role: "ADMIN" }] as const;
    accountRoutes(app, {
      db,
      authenticate,
      ...createCommands({
        db,
        outbox: openOutbox(),
        staff,
        onCommitted: () => {},
        waitMs: longTimeouts.lockTimeoutMs,
      }),
    });
    apps.push(app);

    function call(method: "GET" | "POST" | "PATCH", url: string, { as, headers, payload }: Call = {}) {
      const authorization = typeof as === "string" ? `Bearer ${as}` : as && authorizationOf(as);
      return app.inject({
        method,
        url,
        headers: {
          ...(authorization && { authorization }),
          ...(payload !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(payload !== undefined && { payload: typeof payload === "string" ? payload : JSON.stringify(payload) }),
      });
    }

    const resolve = (subject: string, claims: object = {}) =>
      call("POST", "/identities:resolve", { as: "service:gateway-bff", payload: { provider, subject, ...claims } });

    return {
      app,
      call,
      resolve,
      /** Logs a user in. */
      person: async (subject: string = randomUUID(), claims: object = {}): Promise<UserView> =>
        (await resolve(subject, claims)).json(),
      /** Runs one user action with a key. */
      act: (as: Person, url: string, payload: object, key: string = randomUUID()) =>
        call("POST", url, { as, payload, headers: { "idempotency-key": key } }),
      patch: (as: Person, user: Pick<UserView, "user_id" | "version">, payload: unknown) =>
        call("PATCH", `/users/${user.user_id}`, { as, payload, headers: { "if-match": `"${user.version}"` } }),
      read: async (user: Person): Promise<UserView> =>
        (await call("GET", `/users/${user.user_id}`, { as: user })).json(),
    };
  }

  const count = async (table: string) => Number((await t.db.query(`select count(*) from ${table}`)).rows[0].count);
  const rows = async (query: string) => (await t.db.query(query)).rows;
  return {
    ...t,
    process,
    rows,
    /** The row count of each table that a command writes. */
    counts: async () => ({
      users: await count("users"),
      identities: await count("identities"),
      roles: await count("account_roles"),
      audit: await count("audit_logs"),
      events: await count("outbox_events"),
      keys: await count("idempotency_keys"),
    }),
    /** Violations: a version without an audit row, an audit row or event without its version, a user without identity. */
    violations: async () => ({
      versionsWithoutAudit: await rows(
        `select u.user_id, v from users u cross join lateral generate_series(1, u.version) v
          where not exists (select from audit_logs a where a.user_id = u.user_id and a.version = v)`,
      ),
      auditWithoutVersion: await rows(
        `select a.user_id, a.version from audit_logs a left join users u on u.user_id = a.user_id and u.version >= a.version
          where u.user_id is null`,
      ),
      auditWithoutEvent: await rows(
        `select a.user_id, a.version from audit_logs a
          where a.action <> 'UPDATE'
            and not exists (select from outbox_events e where e.aggregate_key = a.user_id and e.version = a.version)`,
      ),
      eventsWithoutAudit: await rows(
        `select e.aggregate_key, e.version from outbox_events e
          where not exists (select from audit_logs a
                             where a.user_id = e.aggregate_key and a.version = e.version and a.action <> 'UPDATE')`,
      ),
      usersWithoutIdentity: await rows(
        `select user_id from users u where (status <> 'DELETED') <> exists (select from identities i where i.user_id = u.user_id)`,
      ),
    }),
    async [Symbol.asyncDispose]() {
      await Promise.all(apps.map((app) => app.close()));
      await t[Symbol.asyncDispose]();
    },
  };
}

/** The `violations` of consistent tables. */
export const consistent = {
  versionsWithoutAudit: [],
  auditWithoutVersion: [],
  auditWithoutEvent: [],
  eventsWithoutAudit: [],
  usersWithoutIdentity: [],
};
