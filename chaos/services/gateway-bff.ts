/** The gateway in a run: players and an admin, and the checks on what their sessions may do. */
import { groupBy } from "../checks/group.ts";
import type { Evidence, Row } from "../evidence.ts";
import { type Act, isAct } from "../history.ts";
import { type Violation, violation } from "../invariants.ts";
import type { ServiceUnderTest } from "./index.ts";
import { gatewaySecret, runPlayers, tokenKey, verifyingKeys } from "./players.ts";

const noLimit = "1000000/60s";

export const gatewayBff: ServiceUnderTest = {
  name: "gateway-bff",
  copies: 2,
  load: () => import("@todoke/gateway-bff"),
  env: ({ issuer, accountUrl, gatewayUrl }) => ({
    GATEWAY_BFF_PORT: "0",
    GATEWAY_BFF_ORIGIN: gatewayUrl.replace(/\/$/, ""),
    GATEWAY_BFF_SECRET: gatewaySecret,
    GATEWAY_BFF_TOKEN_KEY: tokenKey,
    TODOKE_TOKEN_KEYS: verifyingKeys,
    ACCOUNT_URL: accountUrl,
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: "todoke",
    OIDC_CLIENT_SECRET: gatewaySecret,
    ...Object.fromEntries(
      ["LOGIN", "READ", "WRITE", "BULK", "ADDRESS"].map((name) => [`GATEWAY_BFF_LIMIT_${name}`, noLimit]),
    ),
  }),
  commits: ["know user", "insert session", "commit"],
  publishes: false,
  consumes: true,
  isCalled: true,
  failpoints: ["consumer.", "statement.", "transaction.", "stop."],
  lock: `select from gateway_bff.known_users limit 3 for update skip locked`,
  tables: [],
  actors: ({ harness, random, history, where, stopping }) =>
    runPlayers({ random, history, where, stopping, origin: harness.gatewayUrl }),
  unfinished: `select 0 as unfinished`,
  evidence: {
    knownUsers: `select user_id, status, account_version::int,
                        (select count(*) from gateway_bff.sessions s where s.user_id = k.user_id)::int as sessions
                   from gateway_bff.known_users k`,
    deadEvents: `select event_id::text, last_error from gateway_bff.inbox_dlq where status <> 'RESOLVED'`,
  },
  check: (evidence) => {
    const acts = evidence.history.filter(isAct);
    return [
      ...checkIdentities(acts),
      ...checkSuspensions(acts),
      ...checkLogOuts(acts),
      ...checkCopies(evidence),
      ...rows(evidence, "gateway-bff/deadEvents").map(({ event_id, last_error }) =>
        violation("event-takes-effect", `event ${event_id} was dead-lettered: ${last_error}`),
      ),
    ];
  },
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[name] ?? [];

const succeeded = ({ act, status }: Act): boolean => act === "request" && status === 200;

/** All sessions of a player belong to one user. */
function checkIdentities(acts: readonly Act[]): Violation[] {
  return [...groupBy(acts, ({ player }) => player)].flatMap(([player, its]) => {
    const users = new Set(its.flatMap(({ act, userId }) => (act === "request" && userId ? [userId] : [])));
    return users.size > 1 ? [violation("one-user-per-identity", `${player} was ${[...users].join(" and ")}`)] : [];
  });
}

/** From the answer to a suspension until the player is reinstated, no request of the player succeeds. */
function checkSuspensions(acts: readonly Act[]): Violation[] {
  return [...groupBy(acts, ({ player }) => player)].flatMap(([player, its]) =>
    its
      .filter(({ act, status }) => act === "suspend" && status === 200)
      .flatMap((suspension) => {
        const later = its.filter(({ act, from }) => act === "reinstate" && from >= suspension.to);
        const end = Math.min(...later.map(({ from }) => from));
        return its
          .filter((each) => succeeded(each) && each.from > suspension.to && each.to < end)
          .map(({ path, via, from }) =>
            violation(
              "suspended-is-refused",
              `${player} was suspended; ${path} at ${via} succeeded ${from - suspension.to} ms after the answer`,
            ),
          );
      }),
  );
}

/** After the answer to a logout the session is worthless, at every process. */
function checkLogOuts(acts: readonly Act[]): Violation[] {
  const ended = new Map(
    acts.filter(({ act, status }) => act === "log out" && status === 200).map(({ session, to }) => [session, to]),
  );
  return acts
    .filter((each) => succeeded(each) && each.from > (ended.get(each.session) ?? Number.POSITIVE_INFINITY))
    .map(({ player, session, via }) =>
      violation("no-session-after-logout", `session ${session} of ${player} was used at ${via} after its logout`),
    );
}

/** At the end the gateway has the version and status that account has, and no session of a suspended user. */
function checkCopies(evidence: Evidence): Violation[] {
  const users = new Map(rows(evidence, "account/users").map((user) => [user.user_id, user]));
  return rows(evidence, "gateway-bff/knownUsers").flatMap(({ user_id, status, account_version }) => {
    const user = users.get(user_id);
    if (user?.status === status && Number(account_version) <= Number(user?.version)) return [];
    return [violation("copy-follows-account", `${user_id} is ${user?.status} in account and ${status} in the gateway`)];
  });
}
