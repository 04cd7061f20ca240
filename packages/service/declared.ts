/** Derived from the declarations of a service: its roles, workers and dead letters, and the parts that it starts for them. */
import { type AuditSpec, kernelAudit } from "@todoke/kernel/audit";
import { type Delays, readDelays } from "@todoke/kernel/claims";
import type { Queryable } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { inboxDeadLetters, readInboxDelays } from "@todoke/kernel/inbox";
import { outboxDeadLetters } from "@todoke/kernel/outbox";
import { retentionPolicies, startRetention } from "@todoke/kernel/retention";
import { kernelLookups, type Lookup } from "@todoke/kernel/why";
import type { ServiceSubjects } from "./buses.ts";
import type { CommonSettings } from "./common-settings.ts";
import { inboxRetention, watchInbox } from "./consumes.ts";
import type { ServiceDefinition } from "./definition.ts";
import { discardRoutes } from "./discard-routes.ts";
import { outboxRetention, outboxWork, startOutbox } from "./emits.ts";
import type { Runtime } from "./runtime.ts";
import { finishedBatches, oldSamples } from "./staff/index.ts";
import { startTable } from "./tables.ts";
import { workRoutes } from "./work-routes.ts";

type Declarations = Pick<
  ServiceDefinition<never, string, string, never>,
  "name" | "emits" | "consumes" | "tables" | "roles" | "workers" | "delays" | "explains" | "audited"
>;

export interface Declared {
  readonly subjects: ServiceSubjects;
  /** Sorted. */
  readonly roles: readonly string[];
  readonly consumerRole: string;
  readonly workers: readonly string[];
  readonly deadLetters: readonly DeadLetters[];
  /** How an id is looked up in its tables. */
  readonly lookups: readonly Lookup[];
  readonly auditSpecs: readonly AuditSpec[];
}

export function readDeclarations({
  name,
  emits,
  consumes,
  tables = [],
  roles = [],
  workers = [],
  explains = [],
  audited,
}: Declarations): Declared {
  const consumerRole = consumes?.role ?? "consumer";
  const kernelTables = { emits: emits !== undefined, ...(consumes && { consumer: name }) };
  const redriven = tables.flatMap(({ table, deadLetters, redrivenAs }) =>
    deadLetters && redrivenAs ? [{ table: table.table, by: redrivenAs }] : [],
  );
  return {
    subjects: { emits: emits ?? [], consumes: consumes?.subjects ?? [] },
    roles: [
      ...["api", "maintenance"],
      ...(emits ? ["relay"] : []),
      ...(consumes ? [consumerRole] : []),
      ...roles,
    ].sort(),
    consumerRole,
    workers: [...(emits ? ["relay"] : []), ...(consumes ? ["inbox"] : []), ...workers],
    deadLetters: [
      ...(emits ? [outboxDeadLetters] : []),
      ...tables.flatMap((table) => table.deadLetters ?? []),
      ...(consumes ? [inboxDeadLetters(name)] : []),
    ],
    lookups: [...kernelLookups({ ...kernelTables, redriven }), ...explains],
    auditSpecs: [
      ...(audited ? [audited] : []),
      ...kernelAudit({ ...kernelTables, tables: tables.map(({ table }) => table) }),
    ],
  };
}

/** Its claimed tables, besides the inbox. */
const claimedTables = ({ emits, tables = [] }: Declarations) => [...(emits ? [outboxWork] : []), ...tables];

/** Rows that users wait for. */
export async function readAllDelays(declarations: Declarations, db: Queryable): Promise<readonly Delays[]> {
  const { name, consumes, delays } = declarations;
  const found: Delays[] = [];
  // One after the other: it is a diagnosis, and must not load the database.
  for (const { table } of claimedTables(declarations)) found.push(await readDelays(db, table));
  if (consumes) found.push(...(await readInboxDelays(db, name)));
  return [...found, ...((await delays?.(db)) ?? [])];
}

/** Starts what the declarations ask for, except the consumer: its handler comes from `build`. */
export function startDeclared<Settings>(
  definition: Declarations & Pick<ServiceDefinition<Settings, string, string, never>, "retention">,
  runtime: Runtime,
  { common, settings }: { readonly common: CommonSettings; readonly settings: Settings },
): void {
  const { emits, consumes, tables = [] } = definition;
  const { deadLetters } = readDeclarations(definition);
  const policies = [
    ...(definition.retention?.(settings) ?? []),
    ...(emits ? outboxRetention(common.retention) : []),
    ...(consumes ? inboxRetention(common.retention) : []),
    retentionPolicies.idempotencyKeys(),
    retentionPolicies.discardedCopies(common.retention.discardedMs),
    finishedBatches,
    oldSamples,
  ];
  if (runtime.hasRole("maintenance")) runtime.use(startRetention(runtime.db, policies, { onError: runtime.onError }));
  if (emits) startOutbox(runtime);
  if (consumes) watchInbox(runtime);
  for (const table of tables) startTable(table, runtime);
  if (deadLetters.length > 0)
    runtime.debug((app) =>
      discardRoutes(app, {
        db: runtime.db,
        deadLetters,
        onDiscarded: (table) => runtime.wakeups.signal(runtime.topicOf(table)),
      }),
    );
  const work = claimedTables(definition);
  if (work.length > 0) runtime.debug((app) => workRoutes(app, { db: runtime.db, tables: work }));
}
