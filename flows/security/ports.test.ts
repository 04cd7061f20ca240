/** The routes on the public ports of `todoke serve`, and those that must not be there (reference 5.12). */
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseStatus, send, sendBytes } from "./http-client.ts";
import { serviceNames, startServing } from "./serve-all.ts";

let served: Awaited<ReturnType<typeof startServing>>;
beforeAll(async () => {
  // On all addresses, as behind a load balancer; the ops listeners must stay on loopback.
  const hosts = serviceNames.map((name) => [`${name.toUpperCase().replaceAll("-", "_")}_HOST`, "0.0.0.0"]);
  served = await startServing({
    ...Object.fromEntries(hosts),
    GATEWAY_BFF_ORIGIN: "https://play.example",
    TODOKE_ALLOWED_HOSTS: "account.prod.example",
  });
});
afterAll(() => served[Symbol.asyncDispose]());

test.each([
  "/metrics",
  "/healthz/details",
  "/healthz",
  "/debug",
  "/debug/",
  "/debug/pprof",
  "/debug/heapdump",
  "/debug/outbox/failed",
  "/debug/inbox/dead",
  "/debug/inbox/dlq",
  "/debug/work",
  "/debug/notification/inbox/u_1",
  "/debug/notification/dlq",
  "/debug/matchmaking/rules",
  "/debug/matchmaking/damaged",
  "/debug/points",
  "/heapdump",
  "/json/list",
  "/admin",
  "/admin/",
  "/dlq",
  "/env",
  "/.env",
  "/.git/HEAD",
  "/.git/config",
  "/package.json",
  "/node_modules/pg/package.json",
  "/main.ts",
  "/__debug__",
  "/__x",
  "/server-status",
  "/actuator/env",
  "/phpinfo.php",
  "/graphql",
  "/v1/internal",
  "/identities:resolve/",
  "/..%2f..%2fetc%2fpasswd",
  "/docs/..%2f..%2fpackage.json",
  "/docs/js/..%2f..%2f..%2fpackage.json",
])("%s is 404 on every service's port", async (path) => {
  for (const name of serviceNames)
    expect([name, (await send(served.serviceUrl(name) + path)).status]).toEqual([name, 404]);
});

test("?debug=1 and the like are unknown parameters: 400", async () => {
  for (const name of serviceNames)
    for (const query of ["debug=1", "debug=true", "trace=1", "_debug", "XDEBUG_SESSION_START=1"])
      expect((await send(`${served.serviceUrl(name)}/livez?${query}`)).status).toBe(400);
});

test.each(["TRACE", "TRACK", "CONNECT", "DEBUG", "PROPFIND", "PURGE", "OPTIONS"])(
  "%s is rejected everywhere and echoes nothing",
  async (method) => {
    for (const name of serviceNames) {
      const secret = "Cookie: todoke=tds_mine";
      const received = await sendBytes(
        served.serviceUrl(name),
        `${method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${secret}\r\n\r\n`,
      );
      // CONNECT is no request to Node at all: the connection is closed.
      if (method !== "CONNECT") expect([400, 404, 405], `${name}: ${received}`).toContain(parseStatus(received));
      expect(received).not.toContain("tds_mine");
    }
  },
);

test("metrics and debug routes are on a separate loopback listener", async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((each) => each && !each.internal && each.family === "IPv4");
  // Without another address, 127.0.0.2: a listener on 127.0.0.1 does not accept it either.
  const address = outside?.address ?? "127.0.0.2";
  for (const name of serviceNames) {
    const at = (url: string, path: string) => url.replace("127.0.0.1", address) + path;
    expect((await send(`${served.opsUrl(name)}/metrics`)).status).toBe(200);
    expect((await send(at(served.serviceUrl(name), "/livez"))).status).toBe(200);
    await expect(send(at(served.opsUrl(name), "/metrics"))).rejects.toThrow("fetch failed");
  }
});

test("page, documents and errors do not reveal where the services are", async () => {
  const gateway = served.serviceUrl("gateway-bff");
  const ports = serviceNames.map((name) => new URL(served.serviceUrl(name)).port);
  const paths = [
    "/",
    "/openapi.json",
    "/docs/",
    ...serviceNames.map((name) => `/openapi/${name}.json`),
    "/v1/me",
    "/readyz",
  ];
  for (const path of paths) {
    const { text } = await send(gateway + path);
    expect(text, path).not.toMatch(new RegExp(`127\\.0\\.0\\.1|localhost|:(${ports.join("|")})`));
  }
  expect((await send(`${gateway}/openapi/account.json`)).text).toContain("suspendUser");
  for (const name of [
    "__proto__",
    "constructor",
    "..%2f..%2fadmin",
    "account%2f..",
    "ACCOUNT",
    "http:%2f%2fevil.example",
  ])
    expect([name, (await send(`${gateway}/openapi/${name}.json`)).status]).toEqual([name, 404]);
});

test("a login returns to the configured origin for any forwarded host", async () => {
  const received = await sendBytes(
    served.serviceUrl("gateway-bff"),
    "GET /login HTTP/1.1\r\nHost: play.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n" +
      "X-Forwarded-Proto: http\r\nConnection: close\r\n\r\n",
  );
  expect(parseStatus(received)).toBe(303);
  expect(received).toContain(encodeURIComponent("https://play.example/login/callback"));
  expect(received).toMatch(/set-cookie: __Host-[^\r]+; Secure/i);
  expect(received).not.toContain("evil");
});

test("DNS rebinding: an unknown Host gets 421 on every port of every service", async () => {
  const getWithHost = (url: string, path: string, host: string) =>
    sendBytes(
      url,
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${served.apiKey}\r\nConnection: close\r\n\r\n`,
    );
  for (const name of serviceNames) {
    const targets = [
      [served.serviceUrl(name), "/livez"],
      [served.serviceUrl(name), "/openapi.json"],
      [served.opsUrl(name), "/metrics"],
      [served.opsUrl(name), "/livez"],
    ] as const;
    for (const [url, path] of targets) {
      const { port } = new URL(url);
      for (const host of [`evil.example:${port}`, `127.0.0.1.evil.example:${port}`, "play.example.evil.example"]) {
        const received = await getWithHost(url, path, host);
        expect([name, path, host, parseStatus(received)]).toEqual([name, path, host, 421]);
        expect(received).toContain('"code":"unknown-host"');
      }
      // Probes by address, and containers by short name.
      for (const host of [`127.0.0.1:${port}`, `10.0.0.7:${port}`, `[::1]:${port}`, `localhost:${port}`, name])
        expect([name, path, host, parseStatus(await getWithHost(url, path, host))]).toEqual([name, path, host, 200]);
    }
  }
  expect(parseStatus(await getWithHost(served.serviceUrl("gateway-bff"), "/", "play.example"))).toBe(200);
  expect(parseStatus(await getWithHost(served.serviceUrl("account"), "/livez", "account.prod.example"))).toBe(200);
});

test("no response reveals the software behind it", async () => {
  for (const name of serviceNames)
    for (const path of ["/livez", "/nothing", "/openapi.json"]) {
      const { headers, text } = await send(served.serviceUrl(name) + path);
      expect([headers.get("server"), headers.get("x-powered-by")]).toEqual([null, null]);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(text).not.toMatch(/fastify|node_modules|at \w+ \(|\.ts:\d+/i);
    }
});
