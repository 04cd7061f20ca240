/** The snippets of the README, for the compiler. readme.test.ts compares the two. Nothing here runs. */
import { type AcceptOrderRequest, createClient, isProblem, OutcomeUnknown, type StreamState } from "../index.ts";
import { logIn } from "../login.ts";
import { verifyWebhook, type WebhookEvent, WebhookRejected } from "../webhooks.ts";

declare const apiKey: string;
declare const user_id: string;
declare const purchase_id: string;
declare const order_id: string;
declare const gateway: string;
declare const secret: string;
declare const oldSecret: string;
declare const order: Omit<AcceptOrderRequest, "idempotency_key">;
declare const signal: AbortSignal;
declare const location: { readonly origin: string };
declare function offerMore(detail: string): void;
declare function tryAgainLater(key: string | undefined): void;
declare function showState(state: StreamState): void;
declare function show(text: string): void;
declare function save(id: string): void;
declare function openBrowser(url: string): void;
declare function handle(event: WebhookEvent): Promise<void>;

/** As far as the snippets use them. */
declare const express: {
  text(options: { type: string }): unknown;
};
declare const app: {
  post(
    path: string,
    parser: unknown,
    handle: (request: NodeRequest<string>, response: ExpressResponse) => unknown,
  ): void;
};
interface NodeRequest<Body> {
  readonly body: Body;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}
interface ExpressResponse {
  sendStatus(status: number): void;
}
declare const fastify: {
  addContentTypeParser(
    type: string,
    options: { parseAs: "string" },
    parse: (request: unknown, body: string, done: (error: null, body: string) => void) => void,
  ): void;
  post(path: string, handle: (request: NodeRequest<unknown>, reply: FastifyReply) => unknown): void;
};
interface FastifyReply {
  code(status: number): FastifyReply;
  send(): unknown;
}

export async function snippet1() {
  const todoke = createClient({
    services: { entitlement: "http://entitlement:8081", points: "http://points:8085" },
    apiKey,
  });
  const purchase = { user_id, stock_keeping_unit: "sword", reason: "purchase", purchase_id };
  await todoke.entitlements.grant(purchase, { key: purchase_id });
}

export async function snippet2() {
  const todoke = createClient({ services: { points: "", orders: "" }, apiKey });
  try {
    await todoke.points.spend({ user_id, point_amount: 250n }, { key: order_id });
  } catch (error) {
    if (isProblem(error, "insufficient-points")) return offerMore(error.detail);
    if (error instanceof OutcomeUnknown) return tryAgainLater(error.key);
    throw error;
  }
}

export async function snippet3() {
  const todoke = createClient({ services: { points: "", orders: "" }, apiKey });
  await todoke.orders.accept(order, { key: order.order_id, deadlineMs: 5_000, signal });
}

export async function snippet4() {
  const todoke = createClient({ services: { points: "", orders: "" }, apiKey });
  let total = 0n;
  for await (const { point_amount } of todoke.points.listStatement({ user_id })) total += point_amount;
  console.log(total);
}

export async function snippet5() {
  const todoke = createClient({ services: { points: "", orders: "" }, apiKey });
  const { data, response, attempts, replayed } = await todoke.points.add({ user_id, point_amount: 10n }).withResponse();
  console.log(data.balance, response.status, attempts, replayed);
}

export async function snippet6() {
  const me = createClient({ gateway: location.origin });
  const { last_event_id } = await me.inbox.list();
  for await (const { id, item } of me.inbox.follow({ after: last_event_id, signal, onState: showState })) {
    show(item.text);
    save(id);
  }
}

export async function snippet7() {
  const session = await logIn({ gateway, openBrowser });
  const game = createClient({ gateway, session });
  const match = await game.matchmaking.join("ranked", { attributes: { skill: 1500 } }).matched({ signal });
  console.log(match.match_id);
}

export async function handleWebhook(request: Request): Promise<Response> {
  try {
    const event = await verifyWebhook(await request.text(), request.headers, [secret, oldSecret]);
    await handle(event);
    return new Response(null, { status: 204 });
  } catch (error) {
    if (error instanceof WebhookRejected) return new Response(null, { status: error.statusCode });
    throw error;
  }
}

export async function snippet9() {
  app.post("/webhooks", express.text({ type: "application/json" }), async (request, response) => {
    const event = await verifyWebhook(request.body, request.headers, secret);
    await handle(event);
    response.sendStatus(204);
  });
}

export async function snippet10() {
  fastify.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => done(null, body));
  fastify.post("/webhooks", async (request, reply) => {
    const event = await verifyWebhook(String(request.body), request.headers, secret);
    await handle(event);
    return reply.code(204).send();
  });
}
