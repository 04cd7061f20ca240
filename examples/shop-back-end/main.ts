/**
 * A shop's back-end: it grants what was purchased. The purchase is the idempotency key, so the payment provider may report it as often
 * as it likes, also while this program crashes and starts again: the product is granted once.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { createClient, isProblem } from "@todoke/client";

const { ENTITLEMENT_URL = "http://127.0.0.1:8081", TODOKE_API_KEY = "tdk_dev", PORT = "0" } = process.env;
const todoke = createClient({ services: { entitlement: ENTITLEMENT_URL }, apiKey: TODOKE_API_KEY });

interface Purchase {
  readonly purchase_id: string;
  readonly user_id: string;
  readonly product: string;
}

/** A real shop checks the provider's signature first. */
const server = createServer(async (request, response) => {
  try {
    const { purchase_id, user_id, product } = (await json(request)) as Purchase;
    const grant = { user_id, stock_keeping_unit: product, reason: "purchase", purchase_id };
    const { version } = await todoke.entitlements.grant(grant, { key: `purchase:${purchase_id}` });
    response.end(`granted, version ${version}\n`);
  } catch (error) {
    // A refused grant stays refused. After any other failure, the provider reports the purchase again.
    const isRefused = isProblem(error) && error.status < 500;
    response.writeHead(isRefused ? 422 : 503).end(`${error}\n`);
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`Listening on ${(server.address() as AddressInfo).port}`));
process.once("SIGTERM", () => server.close());
