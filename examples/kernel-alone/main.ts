/**
 * The kernel without any service: an order and its event are committed together, the relay publishes the event, and a
 * consumer creates a shipment.
 *
 * Every run places three orders and waits until all orders, also those of earlier runs, are shipped. Kill a run at any
 * point: the next one completes its orders, and no order is shipped twice.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgresBus } from "@todoke/bus-postgres";
import { migrate, openDb, transaction } from "@todoke/kernel/db";
import { openInbox } from "@todoke/kernel/inbox";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { createRelay, openOutbox } from "@todoke/kernel/outbox";
import { retentionPolicies, startRetention } from "@todoke/kernel/retention";
import { openWakeups } from "@todoke/kernel/worker";

interface OrderPlaced {
  readonly order_id: string;
  readonly item: string;
}

const url = process.env.DATABASE_URL;
if (!url) throw new Error("DATABASE_URL is not set. Set it to the URL of a PostgreSQL database.");

const schema = "shop";
const relayTopic = "shop.outbox_events";
const onError = (error: unknown) => console.error(error);
// The rows of a killed run are claimable again after this time. The default is 30 s.
const leaseMs = 3_000;

// Closed in reverse order: workers first, connections last.
await using running = new AsyncDisposableStack();
const db = openDb({ url, schema, applicationName: "kernel-alone", onConnectionError: onError });
running.defer(() => db.end());
const shopMigrations = { name: "shop", dir: new URL("./migrations/", import.meta.url) };
await migrate(db, { schema, sets: [kernelMigrations, shopMigrations] });
const wakeups = running.use(openWakeups({ url, onError }));
const bus = running.use(await openPostgresBus({ url, name: "kernel-alone", ackWaitMs: leaseMs, onError }));

// The order and its event commit together or not at all.
const outbox = openOutbox({ wakeups, topic: relayTopic });

function placeOrder(item: string): Promise<void> {
  return transaction(db, async (tx) => {
    const order = { order_id: randomUUID(), item };
    await tx.query(`insert into orders (order_id, item) values ($1, $2)`, [order.order_id, order.item]);
    await outbox.append(tx, {
      eventType: "OrderPlaced",
      subject: "shop.events",
      aggregateKey: order.order_id,
      version: 1,
      payload: order,
    });
  });
}

// The shipment commits with the mark that its event is processed.
const inbox = openInbox<OrderPlaced>({
  db,
  consumer: "shipping",
  decode: (delivery) => JSON.parse(new TextDecoder().decode(delivery.payload)),
  effect: async (tx, orders) => {
    for (const { order_id, item } of orders) {
      await tx.query(`insert into shipments (order_id, item) values ($1, $2)`, [order_id, item]);
    }
  },
  onError,
});
running.use(await bus.subscribe({ consumer: "shipping", subjects: ["shop.events"], handle: inbox.handle }));
running.use(inbox.redriver).start();

// The relay publishes events; retention deletes finished rows.
running.use(createRelay({ db, bus, wakeups, topic: relayTopic, settings: { leaseMs }, onError })).start();
running.use(
  startRetention(
    db,
    Object.values(retentionPolicies).map((policy) => policy()),
    { onError },
  ),
);

for (const item of ["book", "lamp", "chair"]) await placeOrder(item);
console.log("3 orders placed");

async function countOrders(): Promise<{ orders: bigint; shipped: bigint; shipments: bigint }> {
  const { rows } = await db.query(
    `select (select count(*) from orders) as orders,
            (select count(distinct order_id) from shipments) as shipped,
            (select count(*) from shipments) as shipments`,
  );
  return rows[0];
}

const deadline = performance.now() + 20_000;
let now = await countOrders();
while (now.shipped < now.orders && performance.now() < deadline) {
  await sleep(20);
  now = await countOrders();
}
console.log(`${now.orders} orders, ${now.shipped} shipped, ${now.shipments} shipments`);
if (now.shipped < now.orders || now.shipments > now.orders) process.exitCode = 1;
