/**
 * The back-end of an arena game's shop. Players earn points and buy items with them; purchases.ts explains the order of the calls.
 *
 *   npm start -- --demo        runs it with everything that it needs
 *   DATABASE_URL=postgres://... npm exec -- node examples/arena-shop/main.ts
 *
 *   GET  /shop/            the page
 *   GET  /shop/items       the prices
 *   POST /shop/bonus       earns points, once a day
 *   POST /shop/matches     { "ticket_id": "..." } earns the points of a match
 *   POST /shop/purchases   { "purchase_id": "...", "item": "fire-sword" }; a player who got no answer sends the same again
 *
 * A proxy gives the shop and the gateway one origin, and player.ts says how a request is authenticated.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, isProblem } from "@todoke/client";
import { migrate, openDb } from "@todoke/kernel/db";
import { createArena } from "./arena.ts";
import { readPageFiles } from "./page-files.ts";
import { authenticate } from "./player.ts";
import { createPurchases, items } from "./purchases.ts";

const { DATABASE_URL = "", TODOKE_API_KEY = "tdk_dev", PORT = "0" } = process.env;
const { TODOKE_GATEWAY: gateway = "http://localhost:8080", SESSION_COOKIE: cookieName = "__Host-todoke" } = process.env;
const { POINTS_URL = "http://127.0.0.1:8085", ENTITLEMENT_URL = "http://127.0.0.1:8082" } = process.env;
if (!DATABASE_URL) throw new Error("DATABASE_URL is not set. Set it to the URL of a PostgreSQL database.");

const session = { gateway, cookieName };
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
const arena = createArena(todoke);
const pageFiles = readPageFiles();

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

const isId = (value: unknown): value is string => typeof value === "string" && /^[\w.-]{1,100}$/.test(value);

const routes: Readonly<Record<string, (request: IncomingMessage) => Promise<Answer>>> = {
  async "GET /shop/items"() {
    return { status: 200, body: items };
  },
  async "POST /shop/bonus"(request) {
    return { status: 200, body: await arena.payBonus(await authenticate(request, session)) };
  },
  async "POST /shop/matches"(request) {
    const player = await authenticate(request, session);
    const { ticket_id } = await readBody(request);
    const result = isId(ticket_id) && (await arena.payMatch(player, ticket_id));
    return result
      ? { status: 200, body: result }
      : { status: 409, body: { detail: "ticket_id: the ticket of a match of the last hour" } };
  },
  async "POST /shop/purchases"(request) {
    const { userId } = await authenticate(request, session);
    const { purchase_id, item } = await readBody(request);
    if (!isId(purchase_id))
      return { status: 422, body: { detail: "purchase_id: up to 100 letters, digits, . _ and -" } };
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
    if (isProblem(error, "not-found")) return { status: 404, body: { detail: error.detail } };
    console.error(error);
    return { status: 503, body: { detail: "It is not known whether this has worked. Send the same request again." } };
  }
}

const server = createServer(async (request, response) => {
  const file = request.method === "GET" && pageFiles.get(request.url?.split("?")[0] ?? "");
  if (file) return response.writeHead(200, file.headers).end(file.body);
  const { status, body } = await answer(request);
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" }).end(toText(body));
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
