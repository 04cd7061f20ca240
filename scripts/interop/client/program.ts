/**
 * What the client promises, on the engine that runs this file: Node, Deno or Bun. Prints a line of JSON for each check. It uses the
 * client and Web APIs only.
 */
import { createClient, isProblem } from "@todoke/client";
import { LogInFailed, logIn } from "@todoke/client/login";
import { verifyWebhook, WebhookRejected } from "@todoke/client/webhooks";

interface Setup {
  readonly urls: { readonly entitlement: string; readonly points: string; readonly notification: string };
  readonly gateway: string;
  readonly apiKey: string;
  /** Other users for each run. */
  readonly prefix: string;
}

declare const process: { readonly env: { readonly SETUP: string } };
const { urls, gateway, apiKey, prefix }: Setup = JSON.parse(process.env.SETUP);
const todoke = createClient({ services: urls, apiKey, retryBaseMs: 10 });

function equal(found: unknown, expected: unknown): void {
  const text = (value: unknown) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}n` : each));
  if (text(found) !== text(expected)) throw new Error(`found ${text(found)}, expected ${text(expected)}`);
}

async function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

const purchase = (name: string) => ({
  user_id: `${prefix}_${name}`,
  stock_keeping_unit: "sword",
  reason: "purchase",
  purchase_id: `${prefix}_${name}`,
});

const checks: Readonly<Record<string, () => Promise<void>>> = {
  async "a grant, and its replay by the same key"() {
    const key = `${prefix}-grant`;
    const first = await todoke.entitlements.grant(purchase("grant"), { key }).withResponse();
    const again = await todoke.entitlements.grant(purchase("grant"), { key }).withResponse();
    equal([first.data.version, first.attempts, first.replayed], [1n, 1, false]);
    equal([again.data, again.replayed], [first.data, true]);
  },

  // The proxy in front of the services cuts the first answer to such a key.
  async "an answer that is lost, before its head and in its body, is asked for again, with one effect"() {
    for (const cut of ["cut-head", "cut-body"]) {
      const { data, replayed } = await todoke.entitlements
        .grant(purchase(cut), { key: `${cut}-${prefix}` })
        .withResponse();
      // Deno may repeat the request itself, so the client's attempts are not counted.
      equal([data.version, replayed], [1n, true]);
    }
  },

  async "a refusal is a problem with its code"() {
    const error = await rejection(todoke.points.spend({ user_id: `${prefix}_poor`, point_amount: 1n }));
    equal(isProblem(error, "insufficient-points"), true);
  },

  async "an integer above 2^53 is exact, or is refused by an engine that cannot read it"() {
    const user_id = `${prefix}_rich`;
    const large = 2n ** 53n + 1n;
    let canReadExactly = false;
    JSON.parse("1", ((_key: string, _value: unknown, context?: { source?: string }) => {
      canReadExactly = context?.source === "1";
    }) as (key: string, value: unknown) => unknown);
    const added = todoke.points.add({ user_id, point_amount: large });
    if (canReadExactly) equal((await added).balance, large);
    else equal((await rejection(added)) instanceof RangeError, true);
  },

  async "every item of every page, in order"() {
    const user_id = `${prefix}_pages`;
    for (const point_amount of [1n, 2n, 3n, 4n, 5n]) await todoke.points.add({ user_id, point_amount });
    const amounts: bigint[] = [];
    for await (const line of todoke.points.listStatement({ user_id, limit: 2 })) amounts.push(line.point_amount);
    equal(amounts, [5n, 4n, 3n, 2n, 1n]);
  },

  async "a stream has what was missed and what is new, and ends when its reader leaves"() {
    const user_id = `${prefix}_stream`;
    const grant = (sku: string) =>
      todoke.entitlements.grant({ ...purchase("stream"), stock_keeping_unit: sku }, { key: `${prefix}-${sku}` });
    const { last_event_id: after } = await todoke.inbox.list({ user_id });
    await grant("missed");
    const states: string[] = [];
    const seen: string[] = [];
    const onState = (state: string) => states.push(state);
    for await (const { item } of todoke.inbox.follow({ user_id }, { after, onState })) {
      seen.push(item.event_type);
      if (seen.length === 2) break;
      await grant("new");
    }
    equal(
      [seen, states],
      [
        ["EntitlementGranted", "EntitlementGranted"],
        ["live", "ended"],
      ],
    );
  },

  async "an abort ends a stream that is silent, and a call"() {
    const leave = new AbortController();
    const onState = (state: string) => state === "live" && leave.abort();
    for await (const _ of todoke.inbox.follow({ user_id: `${prefix}_quiet` }, { signal: leave.signal, onState }))
      throw new Error("nothing was sent");
    const error = await rejection(todoke.points.getBalance({ user_id: "u" }, { signal: AbortSignal.abort() }));
    equal((error as Error).name, "AbortError");
  },

  async "a webhook is verified, and a forged one is not"() {
    const [id, secret, body] = ["n_1", btoa("0123456789abcdef0123456789abcdef"), '{"type":"T","data":{}}'];
    const at = Math.floor(Date.now() / 1_000);
    const bytes = (text: string) => new TextEncoder().encode(text);
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", bytes(atob(secret)), hmac, false, ["sign"]);
    const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(`${id}.${at}.${body}`)));
    const headers = new Headers({
      "webhook-id": id,
      "webhook-timestamp": String(at),
      "webhook-signature": `v1,${btoa(String.fromCharCode(...signature))}`,
    });
    equal((await verifyWebhook(body, headers, `whsec_${secret}`)).id, id);
    equal((await rejection(verifyWebhook(`${body} `, headers, `whsec_${secret}`))) instanceof WebhookRejected, true);
  },

  async "a log-in listens on a port of this machine for the player's browser"() {
    const openBrowser = async (url: string) => {
      const { searchParams } = new URL(url);
      const back = `${searchParams.get("redirect_uri")}?error=access_denied&state=${searchParams.get("state")}`;
      equal((await fetch(back)).ok, true);
    };
    equal((await rejection(logIn({ gateway, openBrowser }))) instanceof LogInFailed, true);
  },
};

for (const [name, check] of Object.entries(checks)) {
  const fault = await check().then(
    () => undefined,
    (error: Error) => error.stack ?? String(error),
  );
  console.log(JSON.stringify({ name, fault }));
}
