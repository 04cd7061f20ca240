/**
 * A rule between services: every published event was processed by each of its consumers, is on its way, or is dead.
 *
 * Two databases have no common snapshot. An event counts as missing only if it was published a minute ago, its consumer has not
 * marked it, nothing waits for that consumer at the bus, and it is still not marked afterwards.
 */

import { consumers } from "@todoke/contracts";
import {
  type Audit,
  type AuditFinding,
  type PublishedEvent,
  perRuleMax,
  selectPublished,
  selectUnprocessed,
} from "@todoke/kernel/audit";
import { findBus, type Subject } from "@todoke/service";
import { readLag, readWaitingDeliveries } from "../bus.ts";
import { withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { statementTimeoutMs } from "./own-rules.ts";

const rule = "every published event was taken by each of its consumers, is on its way, or is dead";
const graceMs = 60_000;
const pageMax = 5_000;

export interface EventsAuditOptions {
  /** Services whose events are audited. */
  readonly producers: readonly ServiceEntry[];
  /** Services that may consume them: those that have a database. */
  readonly configured: readonly ServiceEntry[];
  readonly env: Env;
}

export async function auditEvents({ producers, configured, env }: EventsAuditOptions): Promise<Audit> {
  let checked = 0;
  const findings: AuditFinding[] = [];
  for (const producer of producers) {
    const { events } = await producer.load();
    if (!events || events.emits.length === 0) continue;
    const options = { entry: producer, env, purpose: "todoke audit", statementTimeoutMs };
    await withDatabase(options, async ({ db }) => {
      for (let after: string | undefined; findings.length < perRuleMax; ) {
        const page = await selectPublished(db, { after, graceMs, limit: pageMax });
        checked += page.length;
        findings.push(...(await auditPage(page, { producer: producer.name, configured, env })));
        after = page.at(-1)?.event_id;
        if (page.length < pageMax) break;
      }
    });
  }
  return { checked: { "published events": checked }, rules: [rule], findings: findings.slice(0, perRuleMax) };
}

interface PageOptions extends Pick<EventsAuditOptions, "configured" | "env"> {
  readonly producer: string;
}

async function auditPage(
  page: readonly PublishedEvent[],
  { producer, configured, env }: PageOptions,
): Promise<readonly AuditFinding[]> {
  const findings: AuditFinding[] = [];
  for (const [consumer, subjects] of Object.entries(consumers)) {
    const entry = configured.find(({ name }) => name === consumer);
    const expected = page.filter(({ subject }) => subjects.some((each) => each === subject));
    if (!entry || expected.length === 0) continue;
    for (const id of await findMissing({ entry, env, expected }))
      findings.push({
        rule,
        about: id,
        detail: `${expected.find((each) => each.event_id === id)?.event_type} of ${producer} is not at ${consumer}: \`todoke why ${id}\``,
      });
  }
  return findings;
}

interface Expected {
  readonly entry: ServiceEntry;
  readonly env: Env;
  readonly expected: readonly PublishedEvent[];
}

async function findMissing({ entry, env, expected }: Expected): Promise<readonly string[]> {
  const consumer = entry.name;
  return withDatabase({ entry, env, purpose: "todoke audit", statementTimeoutMs }, async ({ db }) => {
    const ids = expected.map(({ event_id }) => event_id);
    const first = await selectUnprocessed(db, consumer, ids);
    if (first.length === 0) return [];
    const bySubject = Map.groupBy(
      expected.filter(({ event_id }) => first.includes(event_id)),
      ({ subject }) => subject as Subject,
    );
    const waiting = new Set<string>();
    for (const [subject, events] of bySubject)
      for (const id of await findWaiting(consumer, { subject, events, env })) waiting.add(id);
    const second = await selectUnprocessed(db, consumer, first);
    return second.filter((id) => !waiting.has(id));
  });
}

interface SubjectEvents {
  readonly subject: Subject;
  readonly events: readonly PublishedEvent[];
  readonly env: Env;
}

/** A bus in PostgreSQL lists the events that wait. Others only count them, so while any waits, none counts as missing. */
async function findWaiting(consumer: string, { subject, events, env }: SubjectEvents): Promise<readonly string[]> {
  const ids = events.map(({ event_id }) => event_id);
  const url = findBus(subject, env)?.url;
  if (url === undefined) return ids;
  const deliveries = await readWaitingDeliveries(url, ids);
  if (deliveries) return deliveries.filter((each) => each.consumer === consumer).map(({ event_id }) => event_id);
  const lag = await readLag(url, { consumer, subjects: [subject] });
  return lag && lag.waiting === 0 ? [] : ids;
}
