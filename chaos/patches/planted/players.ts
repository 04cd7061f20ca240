/** Defects of account and the gateway: identities, suspensions and sessions. */
import type { Planted } from "./defect.ts";

const sessions = "services/gateway-bff/sessions/postgres.ts";
const services = ["account", "gateway-bff"];

export const playerDefects: readonly Planted[] = [
  {
    name: "suspended-in-account-only",
    what: "The gateway answers a suspension without saving it: its own copy follows with the event.",
    caughtBy: ["suspended-is-refused"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/gateway-bff/commands/propagate-user-change.ts",
        find: "await sessions.saveUser(user);",
        replace: "void user;",
      },
    ],
  },
  {
    name: "sessions-cached",
    what: "A process keeps the sessions that it has found for two seconds, and other processes end them.",
    caughtBy: ["suspended-is-refused", "no-session-after-logout"],
    broughtOutBy: { services },
    patches: [
      {
        file: sessions,
        find: "return hash && ((await findLive(hash)) ?? undefined);",
        replace: `const cache = ((globalThis as never as { found?: Map<string, Session> }).found ??= new Map());
      const known = cache.get(token);
      if (known) return known;
      const live = hash && ((await findLive(hash)) ?? undefined);
      if (live) { cache.set(token, live); setTimeout(() => cache.delete(token), 2_000).unref(); }
      return live;`,
      },
    ],
  },
  {
    name: "logout-in-background",
    what: "A logout is answered at once, and its session ends half a second later.",
    caughtBy: ["no-session-after-logout"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/gateway-bff/commands/log-out.ts",
        find: "await sessions.end(userId, sessionId);",
        replace: "setTimeout(() => void sessions.end(userId, sessionId).catch(() => {}), 500);",
      },
    ],
  },
  {
    name: "user-before-identity",
    what: "Concurrent first logins each create a user, and only one of them gets the identity.",
    caughtBy: ["one-user-per-identity"],
    broughtOutBy: { services },
    patches: [
      {
        file: "services/account/store/identities.ts",
        find: "from insert_identity n, jsonb_to_record",
        replace: "from (select $3::text as user_id) n, jsonb_to_record",
      },
    ],
  },
  {
    name: "status-not-checked",
    what: "A session is looked up without the status of its user, and suspensions end no session.",
    caughtBy: ["suspended-is-refused"],
    broughtOutBy: { services },
    patches: [
      {
        file: sessions,
        find: "if (await upsertUser(tx, user)) await sql.deleteSessions(",
        replace: "if ((await upsertUser(tx, user)) && user.version < 0) await sql.deleteSessions(",
      },
      {
        file: "services/gateway-bff/guard/session-guard.ts",
        find: 'if (session.status !== "ACTIVE" && !request.routeOptions.config.inactiveToo)',
        replace: 'if (session.status === "DELETED" && !request.routeOptions.config.inactiveToo)',
      },
    ],
  },
];
