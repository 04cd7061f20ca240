/**
 * All that the checker gets to see. It is written to files at the end of a run and read from there, so that the checker
 * needs none of the services, and a run can be looked at again.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Db } from "@todoke/kernel/db";
import { type Line, readLines } from "./history.ts";
import type { OrderBroker } from "./order-broker.ts";
import { services } from "./services/index.ts";
import type { BusKind } from "./settings.ts";
import { selectTransitions, type Transition } from "./watch.ts";

export type Row = Readonly<Record<string, string | number | boolean | null>>;

/** A request that the receiver of webhooks got. */
export interface Arrival {
  readonly at: number;
  readonly webhookId: string;
  readonly body: string;
}

/** An event as the auditor found it on the bus, in the order of the bus. */
export interface Audited {
  readonly eventId: string;
  readonly aggregateKey: string;
}

/** An order that the broker of orders took: one for each time that it did. */
export type Taken = Extract<ReturnType<OrderBroker["entries"]>[number], { readonly kind: "taken" }>;

/** Something that was done to the system, or that it did. */
export interface FaultRecord {
  readonly n: number;
  readonly fault: string;
  readonly target: string;
  readonly from: number;
  readonly to: number;
  /** False when there was nothing to do it to: no request came by to be cut. */
  readonly happened: boolean;
  /** The process that it was done to. */
  readonly pid?: number;
  /** Why what it was done to did not come back. */
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
  /** What was wanted of it: a kill, an orderly stop, or nothing. */
  readonly wanted: "kill" | "stop" | "start" | "nothing";
  /** The end of its log, where it ended by itself. */
  readonly lastWords?: string;
}

export interface Facts {
  readonly seed: string;
  readonly bus: BusKind;
  readonly startedAt: number;
  readonly stoppedAt: number;
  /** When everything was finished, if it ever was. */
  readonly quietAt?: number;
  readonly leaseMs: number;
  /** Whether times count: not where other work of the machine, and not the system, may have been slow. */
  readonly timed: boolean;
  readonly faults: readonly FaultRecord[];
  readonly exits: readonly Exit[];
}

export interface Evidence {
  readonly facts: Facts;
  readonly history: readonly Line[];
  /** Rows by "service/name", as the services' `evidence` asks for. */
  readonly tables: Readonly<Record<string, readonly Row[]>>;
  readonly transitions: readonly Transition[];
  readonly arrivals: readonly Arrival[];
  readonly audited: readonly Audited[];
  readonly orderBroker: readonly Taken[];
}

export const files = {
  facts: "facts.json",
  history: "history.jsonl",
  arrivals: "arrivals.jsonl",
  tables: "tables.json",
  transitions: "transitions.jsonl",
  audited: "audited.jsonl",
  orderBroker: "order-broker.jsonl",
} as const;

/** Takes down what the tables hold, once nothing moves any more. */
export async function keepTables(db: Db, folder: string): Promise<void> {
  const tables: Record<string, readonly Row[]> = {};
  for (const { name, evidence } of services)
    for (const [of, sql] of Object.entries(evidence)) tables[`${name}/${of}`] = (await db.query(sql)).rows;
  await writeFile(join(folder, files.tables), JSON.stringify(tables));
  const { rows } = await db.query<Transition>(selectTransitions);
  await writeLines(join(folder, files.transitions), rows);
}

export const keepFacts = (folder: string, facts: Facts): Promise<void> =>
  writeFile(join(folder, files.facts), JSON.stringify(facts, undefined, 1));

export const keepAudited = (folder: string, audited: readonly Audited[]): Promise<void> =>
  writeLines(join(folder, files.audited), audited);

/** What was rejected was not taken. */
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
