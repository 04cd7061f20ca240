/** Checks whether users wait for a service: dead letters, late rows, rows that keep failing, parked aggregates, events at the bus. */
import type { ConsumerLag } from "@todoke/kernel/bus";
import { type Delays, delayCountMax, lateMs } from "@todoke/kernel/claims";
import { getSqlState, openDb } from "@todoke/kernel/db";
import { findBus } from "@todoke/service";
import { readLag } from "../bus.ts";
import { formatError } from "../errors.ts";
import { formatDuration, oneLine } from "../output.ts";
import type { Env, Service, ServiceEntry } from "../services.ts";
import { getDatabaseUrl } from "../settings.ts";
import { type Finding, type Findings, findingsFor } from "./finding.ts";

export async function checkWaiting(entry: ServiceEntry, env: Env): Promise<Finding[]> {
  const findings = findingsFor(entry.name);
  const url = getDatabaseUrl(entry, env);
  if (!url) return [];
  const service = await entry.load();
  if (!service.delays) return [];
  const [tables, consumer] = await Promise.all([
    checkTables(entry, { service, url, findings }),
    checkConsumer(entry, { service, env, findings }),
  ]);
  if (!tables) return consumer;
  const found = [...tables, ...consumer];
  return found.length > 0 ? found : [findings.ok("nobody waits: no dead letters, and nothing is late")];
}

interface TablesCheck {
  readonly service: Service;
  readonly url: string;
  readonly findings: Findings;
}

/** Undefined if the schema is not up to date, which another finding says. */
async function checkTables(
  entry: ServiceEntry,
  { service, url, findings }: TablesCheck,
): Promise<Finding[] | undefined> {
  const schema = entry.name.replaceAll("-", "_");
  const db = openDb({ url, schema, applicationName: "todoke doctor", poolMax: 1, statementTimeoutMs: 5_000 });
  try {
    const found: Finding[] = [];
    for (const table of service.dead?.tables ?? []) {
      const count = await table.count(db, delayCountMax);
      const todo = `\`todoke dead list ${entry.name} --table ${table.name}\`; fix the cause, then redrive or discard them.`;
      if (count > 0) found.push(findings.fault(`${counted(count, "dead letter")} in ${table.name}`, todo));
    }
    for (const delays of (await service.delays?.(db)) ?? [])
      found.push(...describeDelays(entry.name, delays, findings));
    return found;
  } catch (error) {
    if (missingStates.includes(getSqlState(error) ?? "")) return undefined;
    const todo = "Fix the findings of the database first, or use a role that can read the tables.";
    return [findings.fault(`what users wait for cannot be read: ${formatError(error)}`, todo)];
  } finally {
    await db.end();
  }
}

const missingStates = ["42P01", "42703", "3F000"]; // a table, a column, a schema

function describeDelays(service: string, delays: Delays, { fault }: Findings): Finding[] {
  const { table, late, oldestMs, failing, lastError, parked } = delays;
  const found: Finding[] = [];
  if (late > 0)
    found.push(
      fault(
        `${counted(late, "row")} in ${table} ${isOrAre(late)} late, the oldest by ${formatDuration(oldestMs)}`,
        `Check that a process of ${service} with all its roles runs and is ready, and read its log.`,
      ),
    );
  if (failing > 0)
    found.push(
      fault(
        `${counted(failing, "row")} in ${table} failed three times or more: ${oneLine(lastError ?? "no error recorded")}`,
        "Fix the cause. They are retried, and become dead letters at the last attempt.",
      ),
    );
  if (parked > 0)
    found.push(
      fault(
        `${counted(parked, "aggregate")} in ${table} ${isOrAre(parked)} parked: later events wait behind a dead letter`,
        `Redrive it, or discard it: \`todoke dead list ${service}\`.`,
      ),
    );
  return found;
}

interface ConsumerCheck {
  readonly service: Service;
  readonly env: Env;
  readonly findings: Findings;
}

/** Checks the events that wait at each bus of the consumer. A bus that cannot be reached has a finding of its own. */
async function checkConsumer(entry: ServiceEntry, { service, env, findings }: ConsumerCheck): Promise<Finding[]> {
  const subjects = service.events?.consumes ?? [];
  const byUrl = Map.groupBy(subjects, (subject) => findBus(subject, env)?.url ?? "");
  const lags = await Promise.all(
    [...byUrl]
      .filter(([url]) => url !== "")
      .map(([url, its]) => readLag(url, { consumer: entry.name, subjects: its }).catch(() => undefined)),
  );
  return lags.flatMap((lag) => (lag ? describeLag(entry.name, lag, findings) : []));
}

/** More events than a consumer handles in a moment. For RabbitMQ, which does not reveal their age. */
const waitingMax = 1_000;

function describeLag(service: string, { waiting, oldestMs, isSubscribed }: ConsumerLag, findings: Findings): Finding[] {
  if (waiting === 0) return [];
  const says = `${counted(waiting, "event")} at the bus ${isOrAre(waiting)} not processed`;
  const todo = `Check that a process of ${service} that consumes runs and is ready, and read its log.`;
  if (isSubscribed === false) return [findings.fault(`${says}, and no process is subscribed`, todo)];
  if (oldestMs !== undefined)
    return oldestMs > lateMs ? [findings.fault(`${says}, the oldest for ${formatDuration(oldestMs)}`, todo)] : [];
  return [waiting >= waitingMax ? findings.fault(says, todo) : findings.warning(`${says} yet`, todo)];
}

const isOrAre = (count: number) => (count === 1 ? "is" : "are");

function counted(count: number, noun: string): string {
  const number = count.toLocaleString("en");
  return count >= delayCountMax ? `${number} or more ${noun}s` : `${number} ${noun}${count === 1 ? "" : "s"}`;
}
