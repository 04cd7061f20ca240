/** No invented cursor causes a 5xx, on any route that has one. */
import { hash } from "node:crypto";
import { repetitions } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rules } from "../access-rules.ts";
import { apiKeyFor, type ServiceName, startAll, tokenFor } from "../all-services.ts";
import { type OpenApi, parseRoutes } from "../good-requests.ts";
import { send } from "./http-client.ts";

type All = Awaited<ReturnType<typeof startAll>>;
let all: All;
beforeAll(async () => {
  // Puts the operator's routes on the services' own ports.
  all = await startAll({ settings: { TODOKE_DEV: "true" } });
});
afterAll(() => all[Symbol.asyncDispose]());

const uuid = "01890a5d-ac96-774b-bcce-b302099a8057";

/** Parts of our cursors, valid and invalid. */
const times = [
  "2026-01-31T09:30:00.000000Z",
  "2026-01-31T09:30:00.000Z",
  "2026-02-30T09:30:00.000000Z",
  "2026-02-30T09:30:00.000Z",
  "2026-13-01T00:00:00.000000Z",
  "2026-01-01T24:00:00.000000Z",
  "2026-01-01T23:59:60.000000Z",
  "0000-01-01T00:00:00.000000Z",
  "0000-01-01T00:00:00.000Z",
  "9999-99-99T99:99:99.999999Z",
  "infinity",
  "-infinity",
  "now",
];
const numbers = [
  "0",
  "1",
  "-1",
  "01",
  "1e9",
  "2147483648",
  "9223372036854775807",
  "9223372036854775808",
  "9".repeat(40),
  "NaN",
];
const ids = [uuid, uuid.toUpperCase(), "-".repeat(36), uuid.slice(1), `urn:uuid:${uuid}`];
const texts = ["", " ", "a\0b", "'; select 1 --", "%", "x".repeat(700), "\u{1f600}", "\ufffd", "null", "{}"];

const plain = [
  ...times,
  ...numbers,
  ...ids,
  ...texts,
  ...times.flatMap((time) => ["1", "0", "9223372036854775808", uuid, "x"].map((id) => `${time} ${id}`)),
  ...numbers.flatMap((number) => [`${number}.${uuid}`, `${number} ${uuid}`, `${number}.${"-".repeat(36)}`]),
];

/** Bytes that are the same in every run. */
const noise = Array.from({ length: 40 }, (_, n) => hash("sha256", `cursor ${n}`, "buffer").subarray(0, 1 + (n % 32)));

const cursors = [
  ...plain.map((text) => Buffer.from(text).toString("base64url")),
  ...noise.map((bytes) => bytes.toString("base64url")),
  ...plain.slice(0, 20), // Not encoded at all.
  "=",
  "YQ==",
  "a".repeat(1_024),
].filter(Boolean);

/** As many of them as a test has repetitions, in turn, so that the routes together get them all. */
function cursorsFor(route: number): readonly string[] {
  const step = Math.round(cursors.length / repetitions(cursors.length));
  return cursors.filter((_, index) => index % step === route % step);
}

async function bearerFor(name: ServiceName, template: string, admin: { userId: string }): Promise<string> {
  if (rules[name][`GET ${template}`]?.key === "read") return apiKeyFor("read");
  return tokenFor(name, { userId: admin.userId, roles: ["USER", "ADMIN"] });
}

test("an invented cursor gets a page or a 400 that names it, on every route", async () => {
  const admin = await all.createUser("admin");
  const failures: unknown[] = [];
  let [routes, sentCount, rejected] = [0, 0, 0];
  for (const { name, url } of all.running) {
    if (name === "gateway-bff") continue; // It forwards cursors unchanged.
    const document = JSON.parse((await send(`${url}/openapi.json`)).text) as OpenApi;
    for (const { template } of parseRoutes(document).filter(({ inQuery }) =>
      inQuery.some((each) => each.name === "cursor"),
    )) {
      routes++;
      const path = template.replaceAll(/\{(\w+)\}/g, (_, parameter) => parameterFor(name, parameter, admin.userId));
      const bearer = await bearerFor(name, template, admin);
      for (const cursor of cursorsFor(routes)) {
        const response = await send(`${url}${path}?cursor=${encodeURIComponent(cursor)}`, { bearer });
        sentCount++;
        const isNamed = response.status === 400 && response.fields.includes("query.cursor");
        if (isNamed) rejected++;
        else if (response.status !== 200 && response.status !== 404)
          failures.push([name, path, cursor, response.status]);
      }
    }
  }
  expect(failures).toEqual([]);
  expect(routes).toBeGreaterThanOrEqual(14);
  expect(sentCount).toBeGreaterThan(routes * repetitions(150));
  expect(rejected).toBeGreaterThan(sentCount / 2);
});

function parameterFor(service: string, parameter: string, userId: string): string {
  if (parameter === "user_id") return service === "account" ? userId : "u_1";
  return parameter === "id" ? "1" : parameter === "schedule_id" ? uuid : "item1";
}
