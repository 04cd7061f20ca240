import Fastify from "fastify";
import { expect, test } from "vitest";
import { type Cookie, openCookie, sessionCookie } from "./cookie.ts";

async function setCookieOf(act: (cookie: Cookie, reply: Parameters<Cookie["clear"]>[0]) => void, cookie: Cookie) {
  const app = Fastify();
  app.get("/", async (_request, reply) => {
    act(cookie, reply);
    return {};
  });
  return (await app.inject({ url: "/" })).headers["set-cookie"];
}

test("the session cookie is __Host-, HttpOnly, Secure and SameSite=Strict", async () => {
  const cookie = sessionCookie(false);
  expect(await setCookieOf((one, reply) => one.set(reply, "tds_x"), cookie)).toBe(
    "__Host-todoke=tds_x; Path=/; HttpOnly; SameSite=Strict; Secure",
  );
  expect(await setCookieOf((one, reply) => one.clear(reply), cookie)).toBe(
    "__Host-todoke=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0",
  );
});

test("on loopback over http the cookie lacks only the prefix and Secure", async () => {
  expect(await setCookieOf((one, reply) => one.set(reply, "tds_x"), sessionCookie(true))).toBe(
    "todoke=tds_x; Path=/; HttpOnly; SameSite=Strict",
  );
});

test("one response can set several cookies, each with its own age", async () => {
  const login = openCookie({ name: "todoke-login", sameSite: "Lax", maxAgeSeconds: 600, isLoopback: false });
  const both = await setCookieOf((one, reply) => {
    one.set(reply, "tds_x");
    login.set(reply, "y");
  }, sessionCookie(false));
  expect(both).toEqual([
    "__Host-todoke=tds_x; Path=/; HttpOnly; SameSite=Strict; Secure",
    "__Host-todoke-login=y; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600",
  ]);
});

test("valuesIn returns all cookies of exactly one name", () => {
  const valuesIn = (header?: string) =>
    sessionCookie(false).valuesIn({ headers: header === undefined ? {} : { cookie: header } });
  expect(valuesIn()).toEqual([]);
  expect(valuesIn("a=1; __Host-todoke=x; b=2")).toEqual(["x"]);
  expect(valuesIn("__Host-todoke=x; __Host-todoke=y;__Host-todoke=")).toEqual(["x", "y", ""]);
  expect(valuesIn("a__Host-todoke=x; __Host-todoke2=y; __Host-todoke; a=__Host-todoke=z")).toEqual([]);
});
