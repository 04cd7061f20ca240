/** Relay and consumer on JetStream. Baseline: the NATS client alone, publishing, or receiving and acking. */
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
import { type Contender, measureInTurns, ratio } from "./measure.ts";
import type { PipelineSetup } from "./pipeline.ts";
import type { Result } from "./report.ts";

const events = 200_000;
const inFlight = 256;
const subject = "entitlement.events";
/** The stream of the baseline, of the same kind. */
const plainStream = { stream: "bare", subject: "bare.events" };

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

/** Drains 200,000 events from the outbox. Baseline: as many calls of `js.publish`. */
export async function relayToJetStream(natsUrl: string, { empty, old }: PipelineSetup): Promise<Result> {
  await using own = await empty.openSibling();
  await using bus = await openNatsBus({ url: natsUrl, name: "bench" });
  await using client = await openClient(natsUrl);
  const figures = await measureInTurns("relay to JetStream", [
    { name: `js.publish alone, ${inFlight} in flight`, run: () => publishOnly(client.connection) },
    relayContender("relay", own, bus),
    relayContender("relay, 5 million old rows in every table", old, bus),
  ]);
  const [alone, ours, onOld] = figures;
  return {
    title: `relay of ${events.toLocaleString("en")} events to JetStream`,
    figures,
    summary: {
      "relay / js.publish alone": ratio(ours, alone),
      "with 5 million old rows / without": ratio(onOld, ours),
    },
    targets: {
      "relay / js.publish alone": "at least 0.5, aim 0.9",
      "with 5 million old rows / without": "at least 0.8, aim 0.95",
    },
  };
}

function relayContender(name: string, database: BenchDatabase, bus: EventBus): Contender {
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

async function publishOnly(connection: NatsConnection): Promise<number> {
  const js = jetstream(connection);
  let left = events;
  const publisher = async () => {
    while (left-- > 0) {
      const id = randomUUIDv7();
      const headers = emptyHeaders();
      headers.set("event_type", "EntitlementGranted");
      await js.publish(plainStream.subject, encodeEvent("EntitlementGranted", payload(id)), { msgID: id, headers });
    }
  };
  await Promise.all(Array.from({ length: inFlight }, publisher));
  return events;
}

/** Consumes 200,000 events into notifications. Baseline: receiving and acking as many. */
export async function consumeFromJetStream(natsUrl: string, { empty, old }: PipelineSetup): Promise<Result> {
  await using own = await empty.openSibling();
  await using client = await openClient(natsUrl);
  const figures = await measureInTurns("consume from JetStream", [
    {
      name: "NATS client alone, receive and ack",
      before: async () => void (await publishOnly(client.connection)),
      run: () => receiveOnly(client.connection),
    },
    inboxContender("inbox", own, natsUrl),
    inboxContender("inbox, 5 million old rows in every table", old, natsUrl),
  ]);
  const [alone, ours, onOld] = figures;
  return {
    title: `${events.toLocaleString("en")} events consumed from JetStream into notifications`,
    figures,
    summary: {
      "inbox / NATS client alone": ratio(ours, alone),
      "with 5 million old rows / without": ratio(onOld, ours),
    },
    targets: {
      "inbox / NATS client alone": "at least 0.15, aim 0.25",
      "with 5 million old rows / without": "at least 0.8, aim 0.95",
    },
  };
}

async function receiveOnly(connection: NatsConnection): Promise<number> {
  const manager = await jetstreamManager(connection);
  await manager.consumers.add(plainStream.stream, { durable_name: "bench", ack_policy: "explicit" });
  const consumer = await jetstream(connection).consumers.get(plainStream.stream, "bench");
  let left = events;
  for await (const message of await consumer.consume({ max_messages: 1_000 })) {
    message.ack();
    if (--left === 0) break;
  }
  await manager.consumers.delete(plainStream.stream, "bench");
  await manager.streams.purge(plainStream.stream);
  return events;
}

function inboxContender(name: string, database: BenchDatabase, natsUrl: string): Contender {
  const db = database.open("notification", 4);
  const { handle } = openInbox({
    db,
    consumer: "notification",
    decode: readEvent,
    effect: notify({ wakeSender: () => {} }),
  });
  // Each round has its own consumer, which receives what is published after its creation.
  let round = 0;
  return {
    name,
    async before() {
      round++;
      await using bus = await openNatsBus({ url: natsUrl, name: "bench", namespace: roundNamespace(name, round) });
      await (await bus.subscribe({ consumer: "notification", subjects: consumers.notification, handle }))[
        Symbol.asyncDispose
      ]();
      for (let sent = 0; sent < events; sent += 2_000) {
        const outcomes = await bus.publish(
          Array.from({ length: 2_000 }, () => {
            const eventId = randomUUIDv7();
            const envelope = { eventId, eventType: "EntitlementGranted", subject, aggregateKey: `u_${eventId}/item1` };
            const occurredAt = "2026-01-01T00:00:00Z";
            return {
              ...envelope,
              occurredAt,
              headers: {},
              payload: encodeEvent("EntitlementGranted", payload(eventId)),
            };
          }),
        );
        if (outcomes.some(({ kind }) => kind !== "done")) throw new Error("the message broker did not store an event");
      }
    },
    async run() {
      await using bus = await openNatsBus({ url: natsUrl, name: "bench", namespace: roundNamespace(name, round) });
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

/** Separates the rounds on the server. */
const roundNamespace = (name: string, round: number) => `bench-${name.length}-${round}`;

async function openClient(url: string) {
  const connection = await connect({ servers: new URL(url).host });
  const manager = await jetstreamManager(connection);
  await manager.streams
    .add({ name: plainStream.stream, subjects: [plainStream.subject], storage: "file" })
    .catch(() => {});
  return {
    connection,
    async [Symbol.asyncDispose]() {
      await connection.close();
    },
  };
}
