/** The entitlement service in a run: its workload, and the checks on its tables. */
import { checkCommands } from "../checks/commands.ts";
import { type Grouped, groupBy } from "../checks/group.ts";
import { checkOutbox } from "../checks/outbox.ts";
import { checkRealTime } from "../checks/real-time.ts";
import type { Evidence, Row } from "../evidence.ts";
import type { Violation } from "../invariants.ts";
import { outboxTable } from "../watch.ts";
import { entitlementWorkload } from "./entitlement-workload.ts";
import type { ServiceUnderTest } from "./index.ts";

export const entitlement: ServiceUnderTest = {
  name: "entitlement",
  copies: 2,
  load: () => import("@todoke/entitlement"),
  env: () => ({ ENTITLEMENT_PORT: "0", ENTITLEMENT_BATCH_MAX: String(outboxTable.batchMax) }),
  commits: ["change entitlements", "settle outbox_events", "claim outbox_events", "complete outbox_events", "commit"],
  publishes: true,
  consumes: false,
  failpoints: ["command.", "batch.", "relay.", "expiry.", "statement.", "transaction.", "stop."],
  lock: `select from entitlement.entitlements where user_id < 'u_2' for update`,
  tables: [outboxTable],
  workload: entitlementWorkload,
  // A temporary grant is finished when it has expired and its event is published.
  unfinished: `select (select count(*) from entitlement.outbox_events where status <> 'PUBLISHED')::int
                    + (select count(*) from entitlement.entitlements
                        where status = 'ACTIVE' and expires_at is not null)::int as unfinished`,
  evidence: {
    state: `select user_id || '/' || stock_keeping_unit as aggregate, status, version::int, source_id
              from entitlement.entitlements`,
    audit: `select user_id || '/' || stock_keeping_unit as aggregate, version::int, action, source_id as command, caller,
                   event_id::text from entitlement.entitlement_audit`,
    events: `select event_id::text, event_type, aggregate_key as aggregate, version::int, status, position::int,
                    attempt_count, last_error, payload ->> 'source_id' as command
               from entitlement.outbox_events order by position`,
    keys: `select scope, idem_key, response_status, convert_from(response_body, 'utf8') as answer
             from entitlement.idempotency_keys`,
  },
  effectiveCommands: (evidence) => rows(evidence, "audit").map(({ command }) => String(command)),
  check: (evidence) => [
    ...checkCommands(evidence, {
      service: "entitlement",
      // An expiry is a change without a command.
      effects: rows(evidence, "audit").filter(({ action }) => action !== "EXPIRE"),
      keys: rows(evidence, "keys"),
      events: rows(evidence, "events").filter(({ event_type }) => event_type !== "EntitlementExpired"),
      matches: (effect, answer) => answer.version === effect.version && aggregateOf(answer) === effect.aggregate,
    }),
    ...checkVersions(evidence),
    ...checkRealTime(evidence, { service: "entitlement", aggregateOf }),
    ...checkOutbox(evidence, {
      service: "entitlement",
      changes: rows(evidence, "audit"),
      events: rows(evidence, "events"),
    }),
    ...checkExpiry(evidence),
  ],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[`entitlement/${name}`] ?? [];

const aggregateOf = (answer: Row): string => `${answer.user_id}/${answer.stock_keeping_unit}`;

const statusAfter: Readonly<Record<string, string>> = { GRANT: "ACTIVE", REVOKE: "REVOKED", EXPIRE: "EXPIRED" };

/** One row per aggregate; versions are 1, 2, 3, …; the state is that of the last change. */
function checkVersions(evidence: Evidence): Violation[] {
  const audit: Grouped<Row> = groupBy(rows(evidence, "audit"), ({ aggregate }) => String(aggregate));
  const states = groupBy(rows(evidence, "state"), ({ aggregate }) => String(aggregate));
  const wrong = (what: string): Violation => ({ invariant: "versions-without-gaps", what });
  return [...new Set([...audit.keys(), ...states.keys()])].flatMap((aggregate) => {
    const changes = (audit.get(aggregate) ?? []).toSorted((a, b) => Number(a.version) - Number(b.version));
    const state = states.get(aggregate)?.[0];
    const last = changes.at(-1);
    if (!state || !last) return [wrong(`${aggregate} has ${changes.length} changes and ${state ? "a" : "no"} row`)];
    const gap = changes.findIndex(({ version }, index) => version !== index + 1);
    if (gap >= 0) return [wrong(`${aggregate}: change ${gap + 1} has version ${changes[gap]?.version}`)];
    if (state.version !== last.version)
      return [wrong(`${aggregate} is at version ${state.version} and has ${changes.length} changes`)];
    if (state.status !== statusAfter[String(last.action)] || state.source_id !== last.command)
      return [wrong(`${aggregate} is ${state.status} by ${state.source_id} after ${last.action} by ${last.command}`)];
    return [];
  });
}

/** A temporary grant expires once. */
function checkExpiry(evidence: Evidence): Violation[] {
  const ended = rows(evidence, "audit").filter(({ action }) => action === "EXPIRE");
  return [...groupBy(ended, ({ command }) => String(command))].flatMap(([command, ends]) =>
    ends.length > 1
      ? [{ invariant: "done-once" as const, what: `the grant ${command} expired ${ends.length} times` }]
      : [],
  );
}
