/** Relay and consumer on JetStream, beside what the NATS client does alone: publish, and receive and ack. */
import { randomUUIDv7 } from "node:crypto";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers as emptyHeaders, type NatsConnection } from "@nats-io/transport-node";
import { openNatsBus } from "@todoke/bus-nats";
import { consumers, encodeEvent } from "@todoke/contracts";
import type { EventBus } from "@todoke/kernel/bus";
import { openInbox } from "@todoke/kernel/inbox";
import { notify, readEvent } from "@todoke/notification/on-event";
import type { BenchDatabase } from "./databases.ts";
import { drainOutbox } from "./drain.ts";
import { type Contender, race } from "./measure.ts";
import { type PipelineSetup, ratio } from "./pipeline.ts";
import type { Result } from "./report.ts";

const events = 200_000;
const inFlight = 256;
const subject = "entitlement.events";
/** Where the client's own messages go: a stream of the same kind. */
const bare = { stream: "bare", subject: "bare.events" };

const payload = (id: string) => ({
  event_id: id,
  event_type: "EntitlementGranted",
  occurred_at: "2026-01-01T00:00:00.000000Z",
  version: "1",
  user_id: `u_${id}`,
  stock_keeping_unit: "item1",
  source: "purchase",
  source_id: "p_1",
});

/** Drains 200 thousand events from the outbox, beside `js.publish` of as many. */
export async function relayToJetStream(natsUrl: string, { empty, old }: PipelineSetup): Promise<Result> {
  await using own = await empty.another();
  await using bus = await openNatsBus({ url: natsUrl, name: "bench" });
  await using client = await openClient(natsUrl);
  const figures = await race("relay to JetStream", [
    { name: `js.publish alone, ${inFlight} in flight`, run: () => publishAlone(client.connection) },
    relaying("relay", own, bus),
    relaying("relay, 5 million old rows in every table", old, bus),
  ]);
  const [alone, ours, onOld] = figures;
  return {
    title: `relay of ${events / 1_000} thousand events to JetStream`,
    figures,
    ratios: { "relay / js.publish alone": ratio(ours, alone), "with 5 million old rows / without": ratio(onOld, ours) },
    wanted: {
      "relay / js.publish alone": "at least 0.5, aim 0.9",
      "with 5 million old rows / without": "at least 0.8, aim 0.95",
    },
  };
}

function relaying(name: string, database: BenchDatabase, bus: EventBus): Contender {
  const db = database.open("entitlement", 4);
  const encode = ({ eventType, payload }: { eventType: string; payload: string }) =>
    encodeEvent(eventType, JSON.parse(payload));
  return {
    name,
    async before() {
      await db.query(
        `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
         select id, 'EntitlementGranted', '${subject}', id || '/item1', 1,
                $1::jsonb || jsonb_build_object('event_id', id, 'user_id', 'u_' || id)
           from (select uuidv7() as id from generate_series(1, ${events})) e`,
        [JSON.stringify(payload(""))],
      );
      await db.query("analyze outbox_events");
    },
    run: () => drainOutbox(events, { db, bus, encode, onPublished: () => {} }),
  };
}

async function publishAlone(connection: NatsConnection): Promise<number> {
  const js = jetstream(connection);
  let left = events;
  const lane = async () => {
    while (left-- > 0) {
      const id = randomUUIDv7();
      const headers = emptyHeaders();
      headers.set("event_type", "EntitlementGranted");
      await js.publish(bare.subject, encodeEvent("EntitlementGranted", payload(id)), { msgID: id, headers });
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return events;
}

/** Drains 200 thousand events into notifications, beside receiving and acking as many. */
export async function consumeFromJetStream(natsUrl: string, { empty, old }: PipelineSetup): Promise<Result> {
  await using own = await empty.another();
  await using client = await openClient(natsUrl);
  const figures = await race("consume from JetStream", [
    {
      name: "the client's own consume, an ack each",
      before: async () => void (await publishAlone(client.connection)),
      run: () => receiveAlone(client.connection),
    },
    consuming("inbox", own, natsUrl),
    consuming("inbox, 5 million old rows in every table", old, natsUrl),
  ]);
  const [alone, ours, onOld] = figures;
  return {
    title: `${events / 1_000} thousand events from JetStream into notifications by inbox`,
    figures,
    ratios: {
      "inbox / receive and ack alone": ratio(ours, alone),
      "with 5 million old rows / without": ratio(onOld, ours),
    },
    wanted: {
      "inbox / receive and ack alone": "at least 0.15, aim 0.25",
      "with 5 million old rows / without": "at least 0.8, aim 0.95",
    },
  };
}

async function receiveAlone(connection: NatsConnection): Promise<number> {
  const manager = await jetstreamManager(connection);
  await manager.consumers.add(bare.stream, { durable_name: "bench", ack_policy: "explicit" });
  const consumer = await jetstream(connection).consumers.get(bare.stream, "bench");
  let left = events;
  for await (const message of await consumer.consume({ max_messages: 1_000 })) {
    message.ack();
    if (--left === 0) break;
  }
  await manager.consumers.delete(bare.stream, "bench");
  await manager.streams.purge(bare.stream);
  return events;
}

function consuming(name: string, database: BenchDatabase, natsUrl: string): Contender {
  const db = database.open("notification", 4);
  const { handle } = openInbox({ db, consumer: "notification", read: readEvent, effect: notify(() => {}) });
  // A consumer of its own in every round: it gets what is published after it was made.
  let round = 0;
  return {
    name,
    async before() {
      round++;
      await using bus = await openNatsBus({ url: natsUrl, name: "bench", place: placeOf(name, round) });
      await (await bus.subscribe({ consumer: "notification", subjects: consumers.notification, handle }))[
        Symbol.asyncDispose
      ]();
      for (let sent = 0; sent < events; sent += 2_000) {
        const outcomes = await bus.publish(
          Array.from({ length: 2_000 }, () => {
            const eventId = randomUUIDv7();
            const about = { eventId, eventType: "EntitlementGranted", subject, aggregateKey: `u_${eventId}/item1` };
            const occurredAt = "2026-01-01T00:00:00Z";
            return { ...about, occurredAt, headers: {}, payload: encodeEvent("EntitlementGranted", payload(eventId)) };
          }),
        );
        if (outcomes.some(({ kind }) => kind !== "done")) throw new Error("the broker did not take an event");
      }
    },
    async run() {
      await using bus = await openNatsBus({ url: natsUrl, name: "bench", place: placeOf(name, round) });
      let left = events;
      const all = Promise.withResolvers<void>();
      await using _ = await bus.subscribe({
        consumer: "notification",
        subjects: consumers.notification,
        async handle(deliveries, signal) {
          const outcomes = await handle(deliveries, signal);
          for (const { kind } of outcomes) if (kind === "done") left--;
          if (left === 0) all.resolve();
          return outcomes;
        },
      });
      await all.promise;
      return events;
    },
  };
}

/** Keeps the rounds apart on the server. */
const placeOf = (name: string, round: number) => `bench-${name.length}-${round}`;

async function openClient(url: string) {
  const connection = await connect({ servers: new URL(url).host });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: bare.stream, subjects: [bare.subject], storage: "file" }).catch(() => {});
  return {
    connection,
    async [Symbol.asyncDispose]() {
      await connection.close();
    },
  };
}
