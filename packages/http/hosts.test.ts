import { expect, test } from "vitest";
import { ourHosts, readAllowedHosts } from "./hosts.ts";

const isOurs = ourHosts(["play.example.com", "*.svc.cluster.local"]);

test.each([
  undefined,
  "127.0.0.1",
  "127.0.0.1:8082",
  "10.1.2.3:9082",
  "[::1]:8082",
  "[2001:db8::7]",
  "localhost:8082",
  "LOCALHOST",
  "localhost.",
  "dev.localhost:8080",
  "account:8081",
  "gateway-bff",
  "host.docker.internal:8080",
  "play.example.com",
  "Play.Example.COM:443",
  "play.example.com.:443",
  "account.todoke.svc.cluster.local:8081",
])("Host %s is accepted: an address, a name without a dot, or a name of the settings", (header) => {
  expect(isOurs(header)).toBe(true);
  expect(isOurs(header)).toBe(true); // Also when it was the last one.
});

test.each([
  "evil.example",
  "evil.example:8082",
  "play.example.com.evil.example",
  "evilplay.example.com",
  "svc.cluster.local",
  "evilsvc.cluster.local",
  "127.0.0.1.evil.example",
  "127.0.0.1.nip.io",
  "localhost.evil.example",
  "evil-localhost.example",
  "x.internal.evil.example",
  "evilinternal.example",
  "[evil.example]",
  "[127.0.0.1]",
  "evil.example@127.0.0.1",
  "127.0.0.1:8082:evil.example",
  "a b",
  "",
])("Host %s is rejected each time", (header) => {
  expect(isOurs("play.example.com")).toBe(true);
  for (let n = 0; n < 2; n++) expect(isOurs(header)).toBe(false);
});

test("additional hosts are names with a dot and without a port", () => {
  const faults: string[] = [];
  const env = { TODOKE_ALLOWED_HOSTS: "a.example, *.b.example,https://c.example,d.example:80,*" };
  expect(readAllowedHosts(env, faults).slice(0, 2)).toEqual(["a.example", "*.b.example"]);
  expect(faults.map((fault) => /: "([^"]*)"/.exec(fault)?.[1])).toEqual(["https://c.example", "d.example:80", "*"]);
  expect(readAllowedHosts({}, faults)).toEqual([]);
});
