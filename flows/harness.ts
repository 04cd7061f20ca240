/** Test environment of flows: a database that records effects, a bus, and processes that can be killed. */
import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { transaction } from "@todoke/kernel/db";
import { type NewEvent, openOutbox } from "@todoke/kernel/outbox";
import { resolveProgram, testDatabase, until } from "@todoke/kernel/testing";
import { type BusKind, openBus, serverUrl, subject } from "./buses.ts";
import type { PipelineOptions, Report } from "./pipeline.ts";

const outbox = openOutbox();

export interface Process {
  readonly pid: number;
  signal(name: NodeJS.Signals): void;
  /** Continues a process that waits at a point. */
  resume(): void;
  /** Resolves with the first report that has this key. */
  waitForReport<Key extends string>(key: Key): Promise<Extract<Report, { [K in Key]: unknown }>>;
  readonly exited: Promise<unknown>;
}

export async function createHarness(kind: BusKind) {
  const t = await testDatabase();
  // No unique constraint: an effect that happens twice must be visible.
  await t.db.query(`create table effects (
    ordinal bigint generated always as identity, event_id uuid, aggregate_key text, version bigint, payload jsonb)`);
  const namespace = `flow${randomBytes(4).toString("hex")}`;
  const bus = { kind, url: serverUrl(kind, t.url), namespace };
  const children = new Set<ChildProcess>();

  function start(options: Partial<PipelineOptions> = {}): Process {
    const all: PipelineOptions = {
      databaseUrl: t.url,
      bus,
      roles: ["relay", "consumer"],
      // Short, so that a killed process's work is claimed again soon; long enough that a slow machine loses no claim.
      leaseMs: 2_000,
      attemptsMax: 10,
      ...options,
    };
    const child = fork(resolveProgram(new URL("./pipeline.ts", import.meta.url)), [JSON.stringify(all)], {
      execArgv: [],
    });
    children.add(child);
    const reports: Report[] = [];
    child.on("message", (report) => reports.push(report as Report));
    const exited = once(child, "exit").then(() => children.delete(child));
    return {
      pid: child.pid ?? 0,
      signal: (name) => void child.kill(name),
      resume: () => void child.send("go"),
      async waitForReport(key) {
        await until(`process ${child.pid} reports "${key}"`, () => reports.some((report) => key in report));
        return reports.find((report) => key in report) as never;
      },
      exited,
    };
  }

  return {
    ...t,
    bus,
    start,
    /** Another pool on the database, as in another process. */
    pool: () => t.open(),
    openBus: () => openBus(bus),
    /** Appends `count` events, spread over `aggregates`, each in its own transaction. */
    async append(count: number, aggregates: number, more: (n: number) => object = () => ({})): Promise<void> {
      for (let n = 0; n < count; n++) {
        const event: NewEvent = {
          eventType: "FlowHappened",
          subject,
          aggregateKey: `aggregate-${n % aggregates}`,
          version: Math.floor(n / aggregates) + 1,
          payload: { n, ...more(n) },
        };
        await transaction(t.db, (tx) => outbox.append(tx, event));
      }
    },
    async effects(): Promise<{ event_id: string; aggregate_key: string; version: bigint }[]> {
      return (await t.db.query(`select event_id, aggregate_key, version from effects order by ordinal`)).rows;
    },
    async untilPublished(): Promise<void> {
      await until(
        "every event is published",
        async () => (await t.db.query(`select from outbox_events where status <> 'PUBLISHED'`)).rowCount === 0,
      );
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all([...children].map((child) => once(child, "exit")));
      await t[Symbol.asyncDispose]();
    },
  };
}

/** Versions of each aggregate, in the order of their effects. */
export function versionsByAggregate(effects: { aggregate_key: string; version: bigint }[]): Map<string, number[]> {
  const versions = new Map<string, number[]>();
  for (const { aggregate_key, version } of effects) {
    versions.set(aggregate_key, [...(versions.get(aggregate_key) ?? []), Number(version)]);
  }
  return versions;
}
