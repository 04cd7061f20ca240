/** What is on the ports that the world may reach under `todoke serve`, and what is not (reference 5.12). */
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, hear, statusOf } from "./asking.ts";
import { names, startServed } from "./served.ts";

let served: Awaited<ReturnType<typeof startServed>>;
beforeAll(async () => {
  // Open to everybody, as behind a load balancer: what is on loopback only must stay there.
  const hosts = names.map((name) => [`${name.toUpperCase().replaceAll("-", "_")}_HOST`, "0.0.0.0"]);
  served = await startServed({
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
])("nobody finds %s on any service's port", async (path) => {
  for (const name of names) expect([name, (await ask(served.urlOf(name) + path)).status]).toEqual([name, 404]);
});

test("nothing is shown by asking for it to be: ?debug=1 is a question like any other that nobody knows", async () => {
  for (const name of names)
    for (const query of ["debug=1", "debug=true", "trace=1", "_debug", "XDEBUG_SESSION_START=1"])
      expect((await ask(`${served.urlOf(name)}/livez?${query}`)).status).toBe(400);
});

test.each(["TRACE", "TRACK", "CONNECT", "DEBUG", "PROPFIND", "PURGE", "OPTIONS"])(
  "%s is not possible anywhere, and gives nothing back",
  async (method) => {
    for (const name of names) {
      const secret = "Cookie: todoke=tds_mine";
      const heard = await hear(
        served.urlOf(name),
        `${method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${secret}\r\n\r\n`,
      );
      // CONNECT is no request to Node at all: the connection is closed.
      if (method !== "CONNECT") expect([400, 404, 405], `${name}: ${heard}`).toContain(statusOf(heard));
      expect(heard).not.toContain("tds_mine");
    }
  },
);

test("metrics and debugging are on a listener of their own that only this machine can reach", async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((each) => each && !each.internal && each.family === "IPv4");
  // Where there is no other address, another one of loopback: a listener on 127.0.0.1 is not on that either.
  const address = outside?.address ?? "127.0.0.2";
  for (const name of names) {
    const at = (url: string, path: string) => url.replace("127.0.0.1", address) + path;
    expect((await ask(`${served.opsUrlOf(name)}/metrics`)).status).toBe(200);
    expect((await ask(at(served.urlOf(name), "/livez"))).status).toBe(200);
    await expect(ask(at(served.opsUrlOf(name), "/metrics"))).rejects.toThrow("fetch failed");
  }
});

test("nobody outside learns where the services are, by the page, the documents or an error", async () => {
  const gateway = served.urlOf("gateway-bff");
  const ports = names.map((name) => new URL(served.urlOf(name)).port);
  const paths = ["/", "/openapi.json", "/docs/", ...names.map((name) => `/openapi/${name}.json`), "/v1/me", "/readyz"];
  for (const path of paths) {
    const { text } = await ask(gateway + path);
    expect(text, path).not.toMatch(new RegExp(`127\\.0\\.0\\.1|localhost|:(${ports.join("|")})`));
  }
  expect((await ask(`${gateway}/openapi/account.json`)).text).toContain("suspendUser");
  for (const name of [
    "__proto__",
    "constructor",
    "..%2f..%2fadmin",
    "account%2f..",
    "ACCOUNT",
    "http:%2f%2fevil.example",
  ])
    expect([name, (await ask(`${gateway}/openapi/${name}.json`)).status]).toEqual([name, 404]);
});

test("whatever a request says of the name that it came by, a log-in comes back to where players are", async () => {
  const heard = await hear(
    served.urlOf("gateway-bff"),
    "GET /login HTTP/1.1\r\nHost: play.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n" +
      "X-Forwarded-Proto: http\r\nConnection: close\r\n\r\n",
  );
  expect(statusOf(heard)).toBe(303);
  expect(heard).toContain(encodeURIComponent("https://play.example/login/callback"));
  expect(heard).toMatch(/set-cookie: __Host-[^\r]+; Secure/i);
  expect(heard).not.toContain("evil");
});

test("a page that lets its own name point to us reaches nothing, on any port of any service", async () => {
  const asked = (url: string, path: string, host: string) =>
    hear(
      url,
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${served.apiKey}\r\nConnection: close\r\n\r\n`,
    );
  for (const name of names) {
    const doors = [
      [served.urlOf(name), "/livez"],
      [served.urlOf(name), "/openapi.json"],
      [served.opsUrlOf(name), "/metrics"],
      [served.opsUrlOf(name), "/livez"],
    ] as const;
    for (const [url, path] of doors) {
      const { port } = new URL(url);
      for (const host of [`evil.example:${port}`, `127.0.0.1.evil.example:${port}`, "play.example.evil.example"]) {
        const heard = await asked(url, path, host);
        expect([name, path, host, statusOf(heard)]).toEqual([name, path, host, 421]);
        expect(heard).toContain('"code":"unknown-host"');
      }
      // Probes by address, and calls of containers by their short names.
      for (const host of [`127.0.0.1:${port}`, `10.0.0.7:${port}`, `[::1]:${port}`, `localhost:${port}`, name])
        expect([name, path, host, statusOf(await asked(url, path, host))]).toEqual([name, path, host, 200]);
    }
  }
  expect(statusOf(await asked(served.urlOf("gateway-bff"), "/", "play.example"))).toBe(200);
  expect(statusOf(await asked(served.urlOf("account"), "/livez", "account.prod.example"))).toBe(200);
});

test("no answer tells what it is made with", async () => {
  for (const name of names)
    for (const path of ["/livez", "/nothing", "/openapi.json"]) {
      const { headers, text } = await ask(served.urlOf(name) + path);
      expect([headers.get("server"), headers.get("x-powered-by")]).toEqual([null, null]);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(text).not.toMatch(/fastify|node_modules|at \w+ \(|\.ts:\d+/i);
    }
});
