/** An inbox whose effect writes event names to a table, for tests. */
import type { Delivery, Envelope } from "../bus/index.ts";
import type { Db, Tx } from "../db/index.ts";
import { Problem } from "../problem/index.ts";
import { fixedId, testDatabase } from "../testing/index.ts";
import type { Outcome } from "../worker/index.ts";
import { type InboxOptions, inboxDeadLetters, openInbox } from "./index.ts";

let ids = 1;

/** A delivery whose payload and aggregate are `name`. */
export const delivery = (name: string, more: Partial<Delivery> = {}): Delivery => ({
  eventId: fixedId(ids++),
  eventType: "ThingHappened",
  subject: "thing.events",
  aggregateKey: name,
  occurredAt: "2026-01-08T07:10:00Z",
  headers: { tenant: "t1" },
  payload: new TextEncoder().encode(name),
  redelivered: false,
  ...more,
});

export const redelivery = (of: Delivery): Delivery => ({ ...of, redelivered: true });
export const never = new AbortController().signal;
export const refused = (detail: string): Problem =>
  new Problem({ code: "refused", status: 422, title: "Refused" }, detail);

const read = (event: Envelope) => {
  const name = new TextDecoder().decode(event.payload);
  if (name === "garbled") throw new Error("not a thing");
  return name;
};

export async function setup() {
  const t = await testDatabase({
    tables: `create table effects (id int generated always as identity, consumer text, name text)`,
  });
  const inboxFor = (consumer: string, more: Partial<InboxOptions<string>> = {}) =>
    openInbox<string>({
      db: t.db,
      consumer,
      decode: read,
      effect: (tx, names) => insertEffects(tx, consumer, names),
      backoff: { baseMs: 1, capMs: 1 },
      ...more,
    });
  return Object.assign(t, { inboxFor });
}

/** Fails for the names "refused" and "broken". */
export async function insertEffects(tx: Tx, consumer: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await tx.query(`insert into effects (consumer, name) values ($1, $2)`, [consumer, name]);
    if (name === "refused") throw refused("never");
    if (name === "broken") throw new Error("not today");
  }
}

export const readEffects = async (db: Db): Promise<string[]> =>
  (await db.query<{ name: string }>(`select name from effects order by id`)).rows.map((row) => row.name);

export const kinds = (outcomes: readonly { kind: string }[]): string[] => outcomes.map((outcome) => outcome.kind);

/** The delay of a retry or a release. */
export const delayOf = (outcome: Outcome | undefined): number | undefined =>
  outcome?.kind === "retry" || outcome?.kind === "release" ? outcome.delayMs : undefined;

/** Lists the dead letters of a consumer, oldest first. */
export const listDead = (db: Db, consumer: string) => inboxDeadLetters(consumer).list(db, { limit: 100 });

/** Redrives the dead letters of a consumer. Returns their IDs. */
export const redriveDead = async (db: Db, consumer: string): Promise<string[]> =>
  inboxDeadLetters(consumer).redrive(
    db,
    (await listDead(db, consumer)).map(({ id }) => id),
    { by: "aki", reason: "fixed" },
  );

/** The last errors of a consumer's dead letters, oldest first. */
export const readLastErrors = async (db: Db, consumer: string): Promise<(string | null)[]> =>
  (
    await db.query<{ last_error: string | null }>(
      `select last_error from inbox_dlq where consumer = $1 and status = 'DEAD' order by dlq_id`,
      [consumer],
    )
  ).rows.map((row) => row.last_error);
