/** The claimed tables of a service, besides outbox and inbox: gauges, dead letters and routes. */
import type { HttpApp } from "@todoke/http";
import { readBacklog } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { createMeters, type GaugeValue, gauge, type Metric } from "@todoke/kernel/telemetry";
import type { LinkKind } from "@todoke/kernel/why";
import { type RedriveDeadLetter, redriveDeadLetter } from "./redrive-dead-letter.ts";
import type { Runtime } from "./runtime.ts";
import type { WorkTable } from "./work-routes.ts";

export interface DeclaredTable extends WorkTable {
  /** Its backlog and age; a table whose service has gauges of its own needs none. */
  readonly gauges?: TableGauges<string>;
  readonly deadLetters?: DeadLetters;
  /** The kind of id that the key of a dead letter is, for `todoke why`, which shows its redrives. */
  readonly redrivenAs?: LinkKind;
  /** /debug/ routes for its dead letters. */
  readonly deadLetterRoutes?: (app: HttpApp, deps: DeadLetterDeps) => void;
}

export interface DeadLetterDeps {
  readonly db: Db;
  readonly redrive: RedriveDeadLetter;
}

type Gauge<Prefix extends string> = `${Prefix}.${"backlog.current" | "backlog.age" | "dlq.current"}`;

/** Literal names, so that the catalogue of the service knows them. */
type GaugeCatalogue<Prefix extends string> = Readonly<Record<Gauge<Prefix>, Metric & { readonly kind: "gauge" }>>;

export interface TableGauges<Prefix extends string> {
  readonly prefix: Prefix;
  /** To be spread into the catalogue of the service. */
  readonly catalogue: GaugeCatalogue<Prefix>;
}

/** `noun` is what a row is: "notification". */
export function tableGauges<Prefix extends string>(prefix: Prefix, noun: string): TableGauges<Prefix> {
  return {
    prefix,
    catalogue: {
      [`${prefix}.backlog.current`]: gauge(`{${noun}}`, `Unfinished rows, by status: ready or claimed`, ["status"]),
      [`${prefix}.backlog.age`]: gauge("s", "Time for which the oldest due row has been due; 0 if none is due"),
      [`${prefix}.dlq.current`]: gauge(`{${noun}}`, "Dead letters that were not redriven"),
    } as GaugeCatalogue<Prefix>, // TypeScript widens computed names to string.
  };
}

export function startTable(declared: DeclaredTable, runtime: Runtime): void {
  const { table, gauges, deadLetters, deadLetterRoutes } = declared;
  const { name, db, wakeups, hasRole, debug, use, onError, topicOf } = runtime;
  if (gauges && hasRole("maintenance"))
    use(
      createMeters<GaugeCatalogue<string>>(`@todoke/${name}`, gauges.catalogue).observeGauges({
        gauges: Object.keys(gauges.catalogue) as Gauge<string>[],
        read: () => readGauges(db, declared, gauges.prefix),
        onError,
      }),
    );
  if (!deadLetters) return;
  const onRedriven = () => wakeups.signal(topicOf(table.table));
  debug((app) => deadLetterRoutes?.(app, { db, redrive: redriveDeadLetter({ db, deadLetters, onRedriven }) }));
}

async function readGauges(
  db: Db,
  { table, deadLetters }: DeclaredTable,
  prefix: string,
): Promise<readonly GaugeValue<Gauge<string>>[]> {
  const [{ ready, claimed, oldestDueMs }, dead] = await Promise.all([readBacklog(db, table), deadLetters?.count(db)]);
  const status = (state: string) => ({ status: state.toLowerCase() });
  return [
    { name: `${prefix}.backlog.current`, value: ready, attributes: status(table.states.ready) },
    { name: `${prefix}.backlog.current`, value: claimed, attributes: status(table.states.claimed) },
    { name: `${prefix}.backlog.age`, value: oldestDueMs / 1_000 },
    ...(dead === undefined ? [] : [{ name: `${prefix}.dlq.current` as const, value: dead }]),
  ];
}
