/** Defects of commands and their responses. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a patch finds templates as text.
import { deadly, type Planted, repeatedly, slow } from "./defect.ts";

const edge = "packages/http/idempotency.ts";
const batch = "services/entitlement/routes/batch.ts";
const batcher = "services/entitlement/commands/create-change-batcher.ts";
const store = "services/entitlement/store/change-entitlements.ts";
const commandSql = "packages/kernel/idempotency/command-sql.ts";
const main = "services/entitlement/main.ts";
const deps = "services/entitlement/deps.ts";

const results = "return rows.map(({ ordinal: _, ...result }) => result as CommandResult<Refusal>);";
const runChange = "  change.run(db, rows);";

export const commandDefects: readonly Planted[] = [
  {
    name: "key-of-everybody",
    what: "An idempotency key is looked up without its caller: the second caller of a key gets the first caller's response.",
    caughtBy: ["valid-is-accepted"],
    patches: [
      { file: edge, find: "scope: `${caller} ${request.method}", replace: "scope: `${request.method}" },
      { file: batch, find: "scope: `${caller} POST", replace: "scope: `POST" },
    ],
  },
  {
    name: "key-of-every-route",
    what: "An idempotency key is looked up without its route: a revoke finds the response of a grant.",
    caughtBy: ["valid-is-accepted"],
    patches: [
      { file: edge, find: " ${request.method} ${request.routeOptions.url}`", replace: "`" },
      { file: batch, find: " POST ${paths[action]}`", replace: "`" },
    ],
  },
  {
    name: "digest-not-checked",
    what: "A known key returns the stored response, whatever the body.",
    caughtBy: ["conflict-is-rejected"],
    patches: [
      { file: commandSql, find: "case when same_request then 'replayed' else 'conflict' end", replace: "'replayed'" },
    ],
  },
  {
    name: "answer-after-commit",
    what: "The response is stored after the commit of the change: after a crash between the two, the retry repeats the change.",
    caughtBy: ["done-once"],
    broughtOutBy: { given: [deadly("planted.gap")] },
    patches: [
      {
        file: commandSql,
        find: "results where (select count(*) from delete_expired_keys) >= 0",
        replace: "results where (select count(*) from delete_expired_keys) < 0",
      },
      {
        file: commandSql,
        find: results,
        replace: `await reach("planted.gap");
  for (const { ordinal, result, status, contentType, body } of rows as never as (Answer & { ordinal: number; result: string })[]) {
    const row = requests[ordinal - 1];
    if (!row || result !== "first") continue;
    await db.query(
      \`insert into idempotency_keys
         (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
       values ($1, $2, decode($3, 'hex'), $4, $5, $6, now() + interval '24 hours') on conflict do nothing\`,
      [row.scope, row.idem_key, row.request_hash, status, contentType, body],
    );
  }
  ${results}`,
      },
    ],
  },
  {
    name: "event-after-commit",
    what: "The event is written after the commit of the change: after a crash between the two, no consumer receives it.",
    caughtBy: ["event-per-change"],
    broughtOutBy: { given: [deadly("planted.gap")] },
    patches: [
      {
        file: commandSql,
        find: 'from: "results order by ordinal"',
        replace: 'from: "results where false order by ordinal"',
      },
      {
        file: store,
        find: `Promise<readonly ChangeResult[]> =>\n${runChange}`,
        replace: `Promise<readonly ChangeResult[]> => changeThenPublish(db, rows);

async function changeThenPublish(db: Db, rows: readonly ChangeRow[]) {
  const results = await change.run(db, rows);
  await reach("planted.gap");
  await db.query(
    \`insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
     select event_id, event_type, 'entitlement.events', user_id || '/' || stock_keeping_unit, version,
            jsonb_build_object('event_id', event_id, 'event_type', event_type, 'occurred_at', \${rfc3339Sql("created_at")},
              'version', version::text, 'user_id', user_id, 'stock_keeping_unit', stock_keeping_unit,
              'source', source, 'source_id', source_id)
       from (select *, case action when 'GRANT' then 'EntitlementGranted' else 'EntitlementRevoked' end as event_type
               from entitlement_audit) a
      where event_id = any($1::uuid[])\`,
    [rows.map(({ event_id }) => event_id)],
  );
  return results;
}`,
      },
    ],
  },
  {
    name: "publish-before-commit",
    what: "A command publishes its events itself and then commits: events of a rolled-back change are published.",
    caughtBy: ["published-was-committed", "effect-has-a-command"],
    broughtOutBy: { given: [deadly("planted.gap")] },
    patches: [
      {
        file: main,
        find: "authenticate, use, onError }) {",
        replace: `authenticate, use, onError, ...runtime }) {
    const { encodeOutboxEvent } = await import("@todoke/contracts");
    const publish = (events: { eventType: string; payload: string }[]) =>
      (runtime as never as { bus: EventBus }).bus.publish(events.map((event) => ({ ...event, payload: encodeOutboxEvent(event) })) as never);`,
      },
      { file: main, find: "createCommands(db, wakeRelay)", replace: "createCommands(db, wakeRelay, publish)" },
      {
        file: deps,
        find: "createCommands(db: Db, onCommitted: () => void) {",
        replace: "createCommands(db: Db, onCommitted: () => void, publish: unknown) {",
      },
      {
        file: deps,
        find: "createChangeBatcher(db, onCommitted)",
        replace: "createChangeBatcher(db, onCommitted, publish)",
      },
      {
        file: batcher,
        find: "onCommitted: () => void): SubmitChange {",
        replace: "onCommitted: () => void, publish: unknown): SubmitChange {",
      },
      { file: batcher, find: "changeEntitlements(db, rows);", replace: "changeEntitlements(db, rows, publish);" },
      {
        file: store,
        find: "import { type Db, rfc3339Sql, type Tx }",
        replace: "import { type Db, rfc3339Sql, transaction, type Tx }",
      },
      {
        file: store,
        find: `(db: Db | Tx, rows: readonly ChangeRow[]): Promise<readonly ChangeResult[]> =>\n${runChange}`,
        replace: `(db: Db, rows: readonly ChangeRow[], publish: (events: unknown[]) => Promise<unknown>) =>
  transaction(db, async (tx) => {
    const { rows: changed } = await tx.query(change.sql, [JSON.stringify(rows)]);
    const { rows: events } = await tx.query(
      \`select event_id as "eventId", event_type as "eventType", subject, aggregate_key as "aggregateKey",
              \${rfc3339Sql("occurred_at")} as "occurredAt", headers, payload::text as payload
         from outbox_events where event_id = any($1::uuid[])\`,
      [rows.map(({ event_id }) => event_id)],
    );
    await publish(events);
    await reach("planted.gap");
    return changed as ChangeResult[];
  });`,
      },
    ],
  },
  {
    name: "version-of-the-snapshot",
    what: "The next version is one more than the statement saw at its start: two concurrent changes get the same version.",
    caughtBy: ["versions-without-gaps"],
    broughtOutBy: { rate: 250 },
    patches: [
      {
        file: store,
        find: "version = e.version + 1,",
        replace: `version = (select x.version + 1 from entitlements x
                     where x.user_id = e.user_id and x.stock_keeping_unit = e.stock_keeping_unit),`,
      },
    ],
  },
  {
    name: "unknown-is-a-refusal",
    what: "A COMMIT whose response is lost is reported as rolled back, and the caller drops a change that took effect.",
    caughtBy: ["rejected-is-not-done"],
    broughtOutBy: { faults: repeatedly("commit response lost", "entitlement_1", { at: "change entitlements" }) },
    patches: [
      {
        file: "packages/http/problem-handler.ts",
        find: "cause instanceof CommitUnknown)) return outcomeUnknown(error);",
        replace: 'cause instanceof CommitUnknown)) return problems.badRequest("rolled back", { cause: error });',
      },
    ],
  },
  {
    name: "answers-misplaced",
    what: "The responses of a batch are assigned in the order in which the database returns them.",
    caughtBy: ["accepted-is-done", "same-response"],
    broughtOutBy: { rate: 250, given: [slow("batch.starting", 50)] }, // A batch of one cannot be misplaced.
    patches: [
      {
        file: commandSql,
        find: 'refusedSql : ""}\norder by ordinal`;',
        replace: 'refusedSql : ""}`;',
      },
    ],
  },
  {
    name: "read-from-cache",
    what: "Reads come from a cache of five seconds that other processes do not invalidate.",
    caughtBy: ["no-stale-read"],
    broughtOutBy: { rate: 250 },
    patches: [
      {
        file: "services/entitlement/commands/check-entitlement.ts",
        find: "export const checkEntitlement = (db: Db): CheckEntitlement =>",
        replace: `export const checkEntitlement = (db: Db): CheckEntitlement => {
  const known = new Map<string, Entitlement | null>();
  const ask = asking(db);
  return async (name) => {
    const key = \`\${name.userId}/\${name.stockKeepingUnit}\`;
    const row = known.get(key) ?? (await ask(name));
    known.set(key, row);
    setTimeout(() => known.delete(key), 5_000).unref();
    return row;
  };
};

const asking = (db: Db): CheckEntitlement =>`,
      },
    ],
  },
];
