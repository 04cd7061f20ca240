import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { providerKeys } from "./provider-keys.ts";

/** A provider's key set; `fails` makes it unavailable. */
async function setup() {
  const state = { keys: [] as JWK[], fails: false, requests: 0 };
  const server = createServer((_request, response) => {
    state.requests++;
    response.writeHead(state.fails ? 503 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify({ keys: state.keys }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const addKey = async (kid: string) => {
    const { publicKey } = await generateKeyPair("ES256");
    state.keys.push({ ...(await exportJWK(publicKey)), kid, alg: "ES256" });
  };
  await addKey("k1");
  const clock = { ms: 0 };
  const { port } = server.address() as AddressInfo;
  const keys = providerKeys(new URL(`http://127.0.0.1:${port}/jwks`), () => clock.ms);
  const find = (kid: string) => keys({ alg: "ES256", kid }, { payload: "", signature: "" });
  return { state, clock, addKey, find };
}

test("an unknown key ID reloads the keys at once, and then once in ten seconds", async () => {
  const { state, clock, addKey, find } = await setup();
  await find("k1");
  await addKey("k2");
  expect(await find("k2")).toBeDefined();
  expect(state.requests).toBe(2);
  for (let n = 0; n < 5; n++) await expect(find("k3")).rejects.toThrow();
  expect(state.requests).toBe(2);
  await addKey("k3");
  clock.ms = 10_000;
  expect(await find("k3")).toBeDefined();
  expect(state.requests).toBe(3);
});

test("a failed reload does not count: the next token reloads the keys at once", async () => {
  const { state, addKey, find } = await setup();
  await find("k1");
  await addKey("k2");
  state.fails = true;
  await expect(find("k2")).rejects.toThrow("returned 503");
  state.fails = false;
  expect(await find("k2")).toBeDefined();
});
