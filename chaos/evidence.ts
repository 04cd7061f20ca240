/** The checker's input. It is written to files at the end of a run, so that a run can be checked again without services. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { auditLive } from "@todoke/kernel/audit";
import { openDb } from "@todoke/kernel/db";
import { type Databases, schemaOf } from "./databases.ts";
import { type Line, readLines } from "./history.ts";
import type { OrderBroker } from "./order-broker.ts";
import type { ServiceUnderTest } from "./services/index.ts";
import type { BusKind } from "./settings.ts";
import { selectTransitions, type Transition } from "./watch.ts";

export type Row = Readonly<Record<string, string | number | boolean | null>>;

/** A webhook that the receiver got. */
export interface Arrival {
  readonly at: number;
  readonly webhookId: string;
  readonly body: string;
}

/** An event on the bus, in the order of the bus. */
export interface Audited {
  readonly eventId: string;
  readonly aggregateKey: string;
}

/** An order that the broker took; one entry per time. */
export type Taken = Extract<ReturnType<OrderBroker["entries"]>[number], { readonly kind: "taken" }>;

/** An injected fault. */
export interface FaultRecord {
  readonly n: number;
  readonly fault: string;
  readonly target: string;
  readonly from: number;
  readonly to: number;
  /** False if it could not be injected, for instance because no request came to be cut. */
  readonly happened: boolean;
  /** The target process. */
  readonly pid?: number;
  /** Why the target did not recover. */
  readonly failed?: string;
  readonly detail?: Readonly<Record<string, string | number>>;
}

/** How a process ended. */
export interface Exit {
  readonly at: number;
  readonly target: string;
  readonly pid: number;
  readonly code: number | null;
  readonly signal: string | null;
  /** What the harness intended: a kill, an orderly stop, or nothing. */
  readonly wanted: "kill" | "stop" | "start" | "nothing";
  /** The end of its log, if it exited on its own. */
  readonly logTail?: string;
}

export interface Facts {
  readonly seed: string;
  readonly bus: BusKind;
  /** Names of the services that ran. */
  readonly services: readonly string[];
  readonly startedAt: number;
  readonly stoppedAt: number;
  /** When everything was finished; missing if it never was. */
  readonly quietAt?: number;
  readonly leaseMs: number;
  /** Whether time limits are checked: not on a machine with other work. */
  readonly timed: boolean;
  readonly faults: readonly FaultRecord[];
  readonly exits: readonly Exit[];
}

export interface Evidence {
  readonly facts: Facts;
  readonly history: readonly Line[];
  /** Rows by "service/name" of the services' `evidence`. */
  readonly tables: Readonly<Record<string, readonly Row[]>>;
  readonly transitions: readonly Transition[];
  readonly arrivals: readonly Arrival[];
  readonly audited: readonly Audited[];
  readonly orderBroker: readonly Taken[];
}

/** Published events are kept longer than any run. */
const keptMs = 24 * 60 * 60 * 1_000;

/** The name of the findings among a service's tables. */
export const auditFindings = "audit findings";

export const files = {
  facts: "facts.json",
  history: "history.jsonl",
  arrivals: "arrivals.jsonl",
  tables: "tables.json",
  transitions: "transitions.jsonl",
  audited: "audited.jsonl",
  orderBroker: "order-broker.jsonl",
} as const;

/** Saves the tables after the system is quiet. */
export async function saveTables(
  databases: Databases,
  services: readonly ServiceUnderTest[],
  folder: string,
): Promise<void> {
  const tables: Record<string, readonly Row[]> = {};
  for (const service of services) {
    const { name, evidence } = service;
    for (const [of, sql] of Object.entries(evidence))
      tables[`${name}/${of}`] = (await databases.of(name).query(sql)).rows;
    tables[`${name}/${auditFindings}`] = await audited(databases, service);
  }
  await writeFile(join(folder, files.tables), JSON.stringify(tables));
  const transitions: Transition[] = [];
  for (const name of databases.names)
    transitions.push(...(await databases.of(name).query<Transition>(selectTransitions)).rows);
  await writeLines(join(folder, files.transitions), transitions);
}

/** What `todoke audit` finds in the tables of a service. */
async function audited(databases: Databases, { name, load }: ServiceUnderTest): Promise<readonly Row[]> {
  const { audits } = await load();
  const db = openDb({ url: databases.urlOf(name), poolMax: 1, schema: schemaOf(name) });
  const { findings } = await auditLive(db, audits.specs, { keptMs }).finally(() => db.end());
  return findings.map((finding) => ({ ...finding }));
}

export const saveFacts = (folder: string, facts: Facts): Promise<void> =>
  writeFile(join(folder, files.facts), JSON.stringify(facts, undefined, 1));

export const saveAudited = (folder: string, audited: readonly Audited[]): Promise<void> =>
  writeLines(join(folder, files.audited), audited);

/** Rejected orders were not taken. */
export const saveOrderBroker = (folder: string, entries: ReturnType<OrderBroker["entries"]>): Promise<void> =>
  writeLines(
    join(folder, files.orderBroker),
    entries.filter((entry) => entry.kind === "taken" && entry.order.status !== "rejected"),
  );

const writeLines = (file: string, lines: readonly unknown[]): Promise<void> =>
  writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

export async function readEvidence(folder: string): Promise<Evidence> {
  const lines = <T>(of: keyof typeof files) => readLines<T>(join(folder, files[of]));
  const json = async (of: keyof typeof files) => JSON.parse(await readFile(join(folder, files[of]), "utf8"));
  return {
    facts: await json("facts"),
    history: await lines<Line>("history"),
    tables: await json("tables"),
    transitions: await lines<Transition>("transitions"),
    arrivals: await lines<Arrival>("arrivals"),
    audited: await lines<Audited>("audited"),
    orderBroker: await lines<Taken>("orderBroker"),
  };
}
