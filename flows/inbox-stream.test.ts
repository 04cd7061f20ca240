/** A player reads the inbox stream through the gateway while the notification service stops and restarts. */
import { hash, randomBytes } from "node:crypto";
import * as gateway from "@todoke/gateway-bff";
import { formatSigningKey, formatVerifyingKey, newSigningKey, toVerifyingKey } from "@todoke/http";
import { type EventBus, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import type { Db } from "@todoke/kernel/db";
import { freePort, openFaultProxy, until } from "@todoke/kernel/testing";
import { delivery, InboxClient, notificationService } from "@todoke/notification/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";

const userId = "u_123"; // The user of the events in @todoke/notification/testing.

/** Inserts a native session, as a login would. */
async function logIn(db: Db): Promise<Record<string, string>> {
  const token = `tds_${randomBytes(32).toString("base64url")}`;
  await db.query(
    `insert into gateway_bff.known_users (user_id, status, roles, account_version) values ($1, 'ACTIVE', '{USER}', 1)`,
    [userId],
  );
  await db.query(
    `insert into gateway_bff.sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens,
                                       created_at, last_seen_at, ends_at)
     values (gen_random_uuid(), $1, $2, 'native', 'i', 's', '', now(), now(), now() + interval '1 hour')`,
    [hash("sha256", token, "buffer"), userId],
  );
  return { authorization: `Bearer ${token}`, "accept-language": "ja" };
}

async function openSetup() {
  await using parts = new AsyncDisposableStack();
  const t = parts.use(await servicesDatabase(["gateway-bff", "notification"]));
  const key = newSigningKey("k1");
  const notificationPort = await freePort();
  const proxy = parts.use(await openFaultProxy(`http://127.0.0.1:${notificationPort}`));
  const env = {
    DATABASE_URL: t.url,
    LOG_LEVEL: "silent",
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
    NOTIFICATION_PORT: String(notificationPort),
    GATEWAY_BFF_PORT: "0",
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(key),
    GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
    OIDC_ISSUER: "http://127.0.0.1:1",
    OIDC_CLIENT_ID: "todoke",
    ACCOUNT_URL: "http://127.0.0.1:1",
    NOTIFICATION_URL: new URL(proxy.url).origin,
    GATEWAY_BFF_LIMIT_READ: "100000/60s",
    GATEWAY_BFF_LIMIT_ADDRESS: "1000000/60s",
    // A slow machine must not look like an unavailable service.
    GATEWAY_BFF_UPSTREAM_TIMEOUT_MS: "60000",
    GATEWAY_BFF_LIMIT_WAIT_MS: "60000",
  };
  const broker = new MemoryBroker();
  const openBus = async () => memoryBus(broker);
  const notification = notificationService();
  const { url } = parts.use(await gateway.start(env, { openBus }));
  const bus: EventBus = parts.use(await openBus());
  const setup = parts.move();
  return {
    db: t.db,
    url,
    proxy,
    publish: (n: number) => bus.publish([delivery(n)]),
    startNotification: () => notification.start(env, { openBus }),
    [Symbol.asyncDispose]: () => setup.disposeAsync(),
  };
}

test("the inbox stream delivers every notification once through restarts and lost connections", async () => {
  await using setup = await openSetup();
  const headers = await logIn(setup.db);
  await using client = new InboxClient();
  let isStopping = false;
  /** Reconnects until it is accepted, as a client does. */
  const connecting = (async () => {
    while (!isStopping) {
      const status = await client.connect(`${setup.url}/v1/inbox/stream`, headers).catch(() => 0);
      if (status === 200) await client.over;
    }
  })();
  let published = 0;
  const publish = async (count: number) => {
    for (let n = 0; n < count; n++) await setup.publish(++published);
  };
  const waitForReceived = (count: number) =>
    until(`${count} notifications are received`, () => client.received.length >= count);
  for (let round = 0; round < 3; round++) {
    const notification = await setup.startNotification();
    await until("the stream is open", () => client.frames.length > 0 && client.lastEventId !== undefined);
    await publish(5);
    await waitForReceived(published - 2);
    setup.proxy.closeConnections(); // Some of the five may have been on the lost connection.
    await publish(5);
    await waitForReceived(published - 2);
    await notification[Symbol.asyncDispose]();
    await publish(5); // They wait in the message broker.
  }
  await using _ = await setup.startNotification();
  await waitForReceived(published);
  const { rows } = await setup.db.query(
    `select notification_id from notification.notifications order by xid, notification_id`,
  );
  expect(rows).toHaveLength(published);
  expect(client.ids).toEqual(rows.map(({ notification_id }) => notification_id));
  expect(client.received.every(({ text }) => String(text).endsWith("ご利用いただけるようになりました。"))).toBe(true);

  // The list has the same notifications and ends at the same event.
  const list = await fetch(`${setup.url}/v1/inbox?limit=100`, { headers });
  const { notifications, last_event_id } = (await list.json()) as never as {
    readonly notifications: readonly { readonly notification_id: string }[];
    readonly last_event_id: string;
  };
  expect(notifications.map(({ notification_id }) => notification_id).toSorted()).toEqual(client.ids.toSorted());
  expect(last_event_id).toBe(client.lastEventId);
  isStopping = true;
  client.cut();
  await connecting;
});
