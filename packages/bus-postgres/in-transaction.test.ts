import { randomUUIDv7 } from "node:crypto";
import type { EventBus } from "@todoke/kernel/bus";
import { type Db, transaction } from "@todoke/kernel/db";
import { inboxDeadLetters, openInbox } from "@todoke/kernel/inbox";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { createRelay, openOutbox } from "@todoke/kernel/outbox";
import { testDatabase, until } from "@todoke/kernel/testing";
import type { Worker } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { openPostgresBus } from "./index.ts";
import { busMigrations } from "./store.ts";

const outbox = openOutbox();

/** An outbox, an inbox and a bus in one database, and what the consumer did. */
async function setup() {
  const t = await testDatabase({
    schemas: { bus: [busMigrations] },
    sets: [kernelMigrations],
    tables: `create table effects (id int generated always as identity, name text)`,
  });
  const openBus = (url = t.url) => openPostgresBus({ url, schema: "bus", pollMs: 100 });
  return {
    ...t,
    openBus,
    async append(...names: string[]) {
      const events = names.map((name) => ({
        eventType: "T",
        subject: "s.events",
        aggregateKey: name.split("-")[0] ?? name,
        version: 1,
        payload: { name },
      }));
      await transaction(t.db, (tx) => outbox.append(tx, ...events));
    },
    effects: async () => (await t.db.query(`select name from effects order by id`)).rows.map(({ name }) => name),
  };
}

async function startRelay(db: Db, bus: EventBus) {
  const publisher = await bus.openPublisher?.(db);
  if (!publisher) throw new Error("the bus is not in this database");
  const relay = createRelay({ db, bus, publisher, settings: { pollMs: 100 } });
  relay.start();
  return relay;
}

function subscribe(db: Db, bus: EventBus) {
  const { handle, inTransaction } = openInbox<string>({
    db,
    consumer: "c",
    decode: ({ payload }) => JSON.parse(new TextDecoder().decode(payload)).name,
    async effect(tx, names) {
      for (const name of names) {
        if (name.startsWith("bad")) throw new Error("not this one");
        await tx.query(`insert into effects (name) values ($1)`, [name]);
      }
    },
    attemptsMax: 2,
    backoff: { baseMs: 1, capMs: 1 },
  });
  return bus.subscribe({ consumer: "c", subjects: ["s.events"], handle, inTransaction });
}

const event = {
  ...{
    eventId: randomUUIDv7(),
    eventType: "T",
    subject: "s.events",
    aggregateKey: "a",
    occurredAt: "2026-01-01T00:00:00Z",
  },
  ...{ headers: {}, payload: new TextEncoder().encode(`{"name":"x"}`) },
};

/** Rows that one transaction wrote have the same xmin. */
const publishedTogether = `select count(*)::int as n from outbox_events o join bus.bus_messages m using (event_id)
  where o.xmin::text = m.xmin::text and o.status = 'PUBLISHED'`;
const handledTogether = `select count(*)::int as n from effects e join processed_events p on p.xmin::text = e.xmin::text`;

test("an event is PUBLISHED by the transaction that stores its message", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  const together = async () => (await t.db.query(publishedTogether)).rows[0].n;
  for (let n = 1; (await together()) === 0; n++) {
    await t.append(`a-${n}`, `b-${n}`, `a-${n}x`);
    relay.wake();
    await until("all are PUBLISHED", async () => {
      const { rowCount } = await t.db.query(`select from outbox_events where status <> 'PUBLISHED'`);
      return rowCount === 0;
    });
  }
  const stored = await t.db.query(`select from bus.bus_messages`);
  expect(stored.rowCount).toBe((await t.db.query(`select from outbox_events`)).rowCount);
});

test("effect, mark and ack are one commit: an acked delivery leaves no row", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  await using _ = await subscribe(t.db, bus);
  const names: string[] = [];
  const together = async () => (await t.db.query(handledTogether)).rows[0].n;
  for (let n = 1; (await together()) === 0 || n < 10; n++) {
    names.push(`a-${n}`);
    await t.append(`a-${n}`);
    relay.wake();
    await until("it takes effect", async () => (await t.effects()).length === n);
  }
  expect(await t.effects()).toEqual(names);
  await until("all are acked", async () => {
    const { rowCount } = await t.db.query(`select from bus.bus_deliveries where status <> 'DONE'`);
    return rowCount === 0;
  });
});

/** Rows of an event in its outbox, the bus, the inbox and the effects that one transaction wrote. */
const allTogether = `select e.name from outbox_events o join bus.bus_messages m using (event_id)
    join processed_events p using (event_id) join effects e on e.name = o.payload ->> 'name'
  where o.status = 'PUBLISHED' and array[o.xmin::text, m.xmin::text, p.xmin::text] = array_fill(e.xmin::text, array[3])`;

/** Appends events until one of them was published and handled in one transaction. */
async function appendUntilTogether(t: Awaited<ReturnType<typeof setup>>, relay: Worker) {
  for (let n = 1; (await t.db.query(allTogether)).rowCount === 0; n++) {
    await t.append(`first-${n}`);
    relay.wake();
    await until("it takes effect", async () => (await t.effects()).length === n);
  }
}

test("publishing and handling are one commit if the consumer is in this process; then no delivery is stored", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  await using _ = await subscribe(t.db, bus);
  await appendUntilTogether(t, relay);
  const count = (await t.effects()).length;
  const deliveries = async () =>
    (await t.db.query(`select last_value from bus.bus_deliveries_delivery_id_seq`)).rows[0].last_value;
  const deliveriesBefore = await deliveries();
  for (let n = 1; (await deliveries()) !== deliveriesBefore || n < 5; n++) {
    await t.append(`a-${n}`, `b-${n}`, `a-${n}x`);
    relay.wake();
    await until("they take effect", async () => (await t.effects()).length === count + 3 * n);
  }
  const of = (aggregate: string, all: readonly string[]) => all.filter((name) => name.startsWith(`${aggregate}-`));
  expect(of("a", await t.effects()).slice(0, 4)).toEqual(["a-1", "a-1x", "a-2", "a-2x"]);
});

test("an event is not handled before an earlier one of its aggregate that was delivered", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  await using _ = await subscribe(t.db, bus);
  await appendUntilTogether(t, relay);
  // Another process of the consumer is handling it.
  const taken = `insert into bus.bus_deliveries (consumer, message_id, aggregate_key, status, lease_until, attempt_count)
    values ('c', 0, 'a', 'IN_FLIGHT', now() + interval '1 hour', 1)`;
  await t.db.query(taken);
  await t.append("a-1", "b-1");
  relay.wake();
  await until("the other aggregate goes on", async () => (await t.effects()).includes("b-1"));
  await until("the event waits", async () => {
    const { rows } = await t.db.query(
      `select status from bus.bus_deliveries where aggregate_key = 'a' order by message_id`,
    );
    return rows.map(({ status }) => status).join() === "IN_FLIGHT,PENDING";
  });
  expect(await t.effects()).not.toContain("a-1");
  await t.db.query(`delete from bus.bus_deliveries where message_id = 0`);
  await until("it takes effect", async () => (await t.effects()).includes("a-1"));
});

test("an event that its consumer has processed before is published and has no second effect", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  await using _ = await subscribe(t.db, bus);
  await appendUntilTogether(t, relay);
  const effects = await t.effects();
  // Its message has been removed by age, and an operator has it published again.
  await t.db.query(`delete from bus.bus_messages`);
  await t.db.query(`update outbox_events set status = 'PENDING', published_at = null, attempt_count = 0`);
  relay.wake();
  await until("all are PUBLISHED and delivered", async () => {
    const left = await t.db.query(`select from outbox_events where published_at is null
      union all select from bus.bus_deliveries where done_at is null`);
    return left.rowCount === 0;
  });
  expect(await t.effects()).toEqual(effects);
});

test("a consumer that has stopped gets its events when it starts again", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  {
    await using _ = await subscribe(t.db, bus);
    await appendUntilTogether(t, relay);
  }
  await t.append("late-1");
  relay.wake();
  await until("it is delivered", async () => {
    const { rowCount } = await t.db.query(`select from bus.bus_deliveries where status = 'PENDING'`);
    return rowCount === 1;
  });
  expect(await t.effects()).not.toContain("late-1");
  await using _ = await subscribe(t.db, bus);
  await until("it takes effect", async () => (await t.effects()).includes("late-1"));
});

test("an event whose effect fails is retried and dead-lettered alone; the others take effect once, in order", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  await using relay = await startRelay(t.db, bus);
  await using _ = await subscribe(t.db, bus);
  const names: string[] = [];
  for (let n = 1; n <= 20; n++) {
    const all = n % 5 === 0 ? [`a-${n}`, `bad-${n}`, `b-${n}`] : [`a-${n}`, `b-${n}`];
    names.push(...all.filter((name) => !name.startsWith("bad")));
    await t.append(...all);
    relay.wake();
  }
  await until("the bad ones are dead", async () => (await inboxDeadLetters("c").count(t.db)) === 4);
  await until("the others took effect", async () => (await t.effects()).length >= names.length);
  const of = (aggregate: string, all: readonly string[]) => all.filter((name) => name.startsWith(`${aggregate}-`));
  const effects = await t.effects();
  for (const aggregate of ["a", "b"]) expect(of(aggregate, effects)).toEqual(of(aggregate, names));
});

test("an event that cannot be encoded is FAILED and parks its aggregate; the others are published", async () => {
  await using t = await setup();
  await using bus = await t.openBus();
  const publisher = await bus.openPublisher?.(t.db);
  if (!publisher) throw new Error("the bus is not in this database");
  await using relay = createRelay({
    db: t.db,
    bus,
    publisher,
    encode({ payload }) {
      if (payload.includes("bad")) throw new Error("unknown field");
      return new TextEncoder().encode(payload);
    },
    settings: { pollMs: 100 },
  });
  relay.start();
  await t.append("a-1", "bad-1", "bad-2", "b-1");
  relay.wake();
  const statuses = async () =>
    (await t.db.query(`select string_agg(status, ' ' order by position) as all from outbox_events`)).rows[0].all;
  await until("it is FAILED", async () => (await statuses()) === "PUBLISHED FAILED PENDING PUBLISHED");
});

test("a bus in another database, or without rights on its tables, has no publisher", async () => {
  await using t = await setup();
  await using other = await setup();
  await using bus = await t.openBus();
  expect(await bus.openPublisher?.(t.db)).toBeDefined();
  expect(await bus.openPublisher?.(other.db)).toBeUndefined();
  const role = `reader_${randomUUIDv7().replaceAll("-", "")}`;
  await t.db.query(`create role ${role} login password 'secret'`);
  try {
    const url = Object.assign(new URL(t.url), { username: role, password: "secret" }).href;
    expect(await bus.openPublisher?.(t.open({ url }))).toBeUndefined();
    await t.db.query(
      `grant usage on schema bus to ${role}; grant select, insert on all tables in schema bus to ${role}`,
    );
    expect(await bus.openPublisher?.(t.open({ url }))).toBeUndefined();
    await t.db.query(`grant update, delete on all tables in schema bus to ${role}`);
    await using _ = await subscribe(t.db, bus);
    const [own, others] = [await bus.openPublisher?.(t.db), await bus.openPublisher?.(t.open({ url }))];
    await transaction(
      t.db,
      async (tx) => void (await Promise.all([own?.publish(tx, [event]), others?.publish(tx, [event])])),
    );
    expect(own?.findConsumer?.()).toBeDefined();
    expect(others?.findConsumer?.()).toBeUndefined(); // It has another user, which may have other rights.
  } finally {
    await t.db.query(`drop owned by ${role}; drop role ${role}`);
  }
});
