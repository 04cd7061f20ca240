/**
 * The back-end of an arena game's shop. Players earn points and buy items with them; purchases.ts explains the order of the calls.
 *
 *   DATABASE_URL=postgres://... npm exec -- node examples/arena-shop/main.ts
 *
 *   GET  /items       the prices
 *   POST /bonus       earns 100 points, once a day
 *   POST /purchases   { "purchase_id": "...", "item": "fire-sword" }; a player who got no answer sends the same again
 *
 * A request has the player's session at the gateway: `Authorization: Bearer tds_...`.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, isProblem } from "@todoke/client";
import { migrate, openDb } from "@todoke/kernel/db";
import { createPurchases, items } from "./purchases.ts";

const { DATABASE_URL = "", TODOKE_GATEWAY = "http://localhost:8080", TODOKE_API_KEY = "tdk_dev" } = process.env;
const { POINTS_URL = "http://127.0.0.1:8085", ENTITLEMENT_URL = "http://127.0.0.1:8082", PORT = "0" } = process.env;
if (!DATABASE_URL) throw new Error("DATABASE_URL is not set. Set it to the URL of a PostgreSQL database.");

const bodyMax = 10_000;
const resumeIntervalMs = 10_000;
/** Longer than a call with all its attempts, so that a purchase is seldom resumed while a request still works on it. */
const idleMs = 60_000;

const todoke = createClient({
  services: { points: POINTS_URL, entitlement: ENTITLEMENT_URL },
  apiKey: TODOKE_API_KEY,
});
const schema = "arena_shop";
const db = openDb({ url: DATABASE_URL, schema, applicationName: "arena-shop" });
await migrate(db, { schema, sets: [{ name: "arena-shop", dir: new URL("./migrations/", import.meta.url) }] });
const purchases = createPurchases(db, todoke);

/** The player, as the gateway knows the session. */
async function authenticate({ headers }: IncomingMessage): Promise<string> {
  const [, session = ""] = /^Bearer (tds_[\w-]{1,100})$/.exec(headers.authorization ?? "") ?? [];
  return (await createClient({ gateway: TODOKE_GATEWAY, session }).gateway.getMe()).user_id;
}

async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) {
    text += part;
    if (text.length > bodyMax) return {};
  }
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

interface Answer {
  readonly status: number;
  readonly body: object;
}

const routes: Readonly<Record<string, (request: IncomingMessage) => Promise<Answer>>> = {
  async "GET /items"() {
    return { status: 200, body: items };
  },
  async "POST /bonus"(request) {
    const user_id = await authenticate(request);
    // The day is part of the key, and a key is remembered for 24 hours: one bonus a day, also if the shop dies here.
    const key = `bonus:${user_id}:${new Date().toISOString().slice(0, 10)}`;
    const { balance } = await todoke.points.add({ user_id, point_amount: 100n, reason: "daily bonus" }, { key });
    return { status: 200, body: { balance } };
  },
  async "POST /purchases"(request) {
    const userId = await authenticate(request);
    const { purchase_id, item } = await readBody(request);
    if (typeof purchase_id !== "string" || !/^[\w-]{1,64}$/.test(purchase_id))
      return { status: 422, body: { detail: "purchase_id: 1 to 64 letters, digits, _ and -" } };
    if (typeof item !== "string" || !Object.hasOwn(items, item))
      return { status: 422, body: { detail: `item: one of ${Object.keys(items).join(", ")}` } };
    const purchase = await purchases.buy(userId, purchase_id, item);
    if (!purchase) return { status: 409, body: { detail: "You have bought this item, or the purchase_id is in use." } };
    return { status: purchase.state === "REFUSED" ? 402 : 200, body: purchase };
  },
};

/** Points can be past 2^53: their digits go out as text. */
const toText = (body: object) => JSON.stringify(body, (_, value) => (typeof value === "bigint" ? `${value}` : value));

async function answer(request: IncomingMessage): Promise<Answer> {
  const route = routes[`${request.method} ${request.url}`];
  if (!route) return { status: 404, body: { detail: "There is no such route." } };
  try {
    return await route(request);
  } catch (error) {
    if (isProblem(error, "unauthenticated")) return { status: 401, body: { detail: "Log in at the gateway." } };
    if (isProblem(error, "ACCOUNT_INACTIVE")) return { status: 403, body: { detail: "The account is suspended." } };
    console.error(error);
    return { status: 503, body: { detail: "It is not known whether this has worked. Send the same request again." } };
  }
}

const server = createServer(async (request, response) => {
  const { status, body } = await answer(request);
  response.writeHead(status, { "content-type": "application/json" }).end(toText(body));
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`Listening on ${(server.address() as AddressInfo).port}`));

const stop = new AbortController();
server.once("close", () => stop.abort());
process.once("SIGTERM", () => server.close());
// At the start every unfinished purchase is resumed. If another copy works on it too, both make the same calls.
for (let olderThanMs = 0; !stop.signal.aborted; olderThanMs = idleMs) {
  await purchases.resume(olderThanMs).catch(console.error);
  await sleep(resumeIntervalMs, undefined, { signal: stop.signal }).catch(() => {});
}
await db.end();
