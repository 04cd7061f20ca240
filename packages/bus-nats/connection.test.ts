import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { startEngine } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { done } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { openNatsBus } from "./index.ts";
import { parseNatsUrl } from "./servers.ts";
import { createHarness, recordDeliveries, sampleEvent } from "./testing.ts";

test("a bus opens while the server is unavailable and works once it is there", async () => {
  await using engine = await startEngine("nats");
  await engine.kill();
  const logged: string[] = [];
  await using bus = await openNatsBus({ url: engine.url, name: "test", log: (message) => logged.push(message) });
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /connection refused/,
  });
  await expect(recordDeliveries(bus)).rejects.toMatchObject({ name: "BusUnavailable" });
  await expect(bus.check()).rejects.toMatchObject({ name: "BusUnavailable" });
  expect(logged).toContain("cannot connect to NATS; retrying");
  await engine.start();
  await until("it is connected", () =>
    bus.check().then(
      () => true,
      () => false,
    ),
  );
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
});

test.each(["", "nats://", "nats://user:secret@[", "nats://one:4222,,nats://two:4222"])(
  "the invalid URL %j is rejected, and the error does not repeat it",
  async (url) => {
    const opening = openNatsBus({ url, name: "test" });
    await expect(opening).rejects.toMatchObject({ message: "the URL of the NATS server is invalid" });
  },
);

test("a URL has several servers separated by commas, and tls:// requests TLS", () => {
  expect(parseNatsUrl("nats://one:4222,two:4223").client).toEqual({ servers: ["one:4222", "two:4223"] });
  const { client } = parseNatsUrl("tls://token@one:4222,tls://two:4222");
  expect(client).toMatchObject({ servers: ["one:4222", "two:4222"], token: "token", tls: {} });
});

test("the parameters of the URL are settings of a new stream, also if the first server of the list is gone", async () => {
  await using engine = await startEngine("nats");
  await using harness = await createHarness(engine);
  const parameters = new URLSearchParams({ namespace: harness.namespace, max_bytes: "12345678", replicas: "1" });
  const url = `nats://127.0.0.1:${await freePort()},${new URL(engine.url).host}?${parameters}`;
  // In the order of the list: the client would shuffle it.
  await using bus = await openNatsBus({ url, name: "test", client: { noRandomize: true } });
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
  const received = await recordDeliveries(bus);
  await until("it is received", () => received.length === 1);
  const { config } = await harness.manager.streams.info(harness.stream);
  expect(config).toMatchObject({
    subjects: [`${harness.namespace}.things.>`],
    max_bytes: 12_345_678,
    num_replicas: 1,
  });

  // Only the refusal of a server that is alone shows that it was asked for copies.
  parameters.set("namespace", `${harness.namespace}-copies`);
  parameters.set("replicas", "3");
  await using copied = await openNatsBus({ url: `${engine.url}?${parameters}`, name: "test" });
  await expect(copied.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /cannot be created: replicas > 1 not supported in non-clustered mode/,
  });
});

test("a bus that never connected can be closed", async () => {
  const engine = await startEngine("nats");
  await engine[Symbol.asyncDispose]();
  const bus = await openNatsBus({ url: engine.url, name: "test" });
  await bus[Symbol.asyncDispose]();
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({ message: "this bus is closed" });
});

test("credentials in the URL are used, and wrong ones are reported", async () => {
  await using engine = await startEngine("nats", { settings: { authorization: "{ user: todoke, password: 'p@ss' }" } });
  const { host } = new URL(engine.url);
  await using bus = await openNatsBus({ url: `nats://todoke:p%40ss@${host}`, name: "test" });
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
  await using stranger = await openNatsBus({ url: `nats://todoke:guess@${host}`, name: "test" });
  await expect(stranger.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /authorization/i,
  });
});

/** A server that accepts JWTs of one account, and the credentials file of a user of it. */
function createCredentials() {
  const [operator, account, system, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const sign = (issuer: nkeys.KeyPair, subject: nkeys.KeyPair, type: string, claims: object = {}) => {
    const [iss, sub] = [issuer.getPublicKey(), subject.getPublicKey()];
    const nats = { type, version: 2, ...claims };
    const signed = [
      { typ: "JWT", alg: "ed25519-nkey" },
      { jti: sub, iat: 1, iss, sub, name: type, nats },
    ]
      .map(encode)
      .join(".");
    return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString("base64url")}`;
  };
  const names = ["subs", "data", "payload", "imports", "exports", "conn", "leaf"];
  const storage = ["mem_storage", "disk_storage", "streams", "consumer"];
  const unlimited = (keys: string[]) => Object.fromEntries(keys.map((key) => [key, -1]));
  const limits = { ...unlimited(names), wildcards: true };
  const accounts = [
    [account, { limits: { ...limits, ...unlimited(storage) } }],
    [system, { limits }],
  ] as const;
  const preload = accounts.map(([key, claims]) => `${key.getPublicKey()}: ${sign(operator, key, "account", claims)}`);
  const jwt = sign(account, user, "user", unlimited(["subs", "data", "payload"]));
  const seed = Buffer.from(user.getSeed()).toString();
  return {
    settings: {
      operator: sign(operator, operator, "operator"),
      system_account: system.getPublicKey(),
      resolver: "MEMORY",
      resolver_preload: `{ ${preload.join(", ")} }`,
    },
    file: `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  };
}

test("a credentials file logs in where nothing else does", async () => {
  const { settings, file } = createCredentials();
  await using engine = await startEngine("nats", { settings });
  const dir = await mkdtemp(join(tmpdir(), "todoke-test-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
  await writeFile(join(dir, "user.creds"), file);
  const parameters = new URLSearchParams({ creds_file: join(dir, "user.creds") });
  await using bus = await openNatsBus({ url: `${engine.url}?${parameters}`, name: "test" });
  expect(await bus.publish([sampleEvent()])).toEqual([done]);
  await using stranger = await openNatsBus({ url: engine.url, name: "test" });
  await expect(stranger.publish([sampleEvent()])).rejects.toMatchObject({ message: /authorization/i });
});

test("publishing to a server without JetStream fails with the setting to change", async () => {
  await using engine = await startEngine("nats", {
    settings: { accounts: "{ plain: { users: [ { user: a, password: b } ] } }" },
  });
  const { host } = new URL(engine.url);
  await using bus = await openNatsBus({ url: `nats://a:b@${host}`, name: "test" });
  await expect(bus.publish([sampleEvent()])).rejects.toMatchObject({
    name: "BusUnavailable",
    message: /JetStream is not enabled/,
  });
});
