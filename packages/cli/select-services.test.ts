import { freePort, testDatabase } from "@todoke/kernel/testing";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import type { Finding } from "./doctor/finding.ts";
import { services } from "./services.ts";
import { variable } from "./settings.ts";
import { runTodoke } from "./testing/command.ts";

/** Free ports, so that the doctor has nothing to say about them. */
const freePorts = async () =>
  Object.fromEntries(
    await Promise.all(services.map(async ({ name }) => [variable(name, "PORT"), String(await freePort())])),
  );

/** Wrong settings of services that have no database here, and of `todoke dev`. */
const unusable = {
  POINTS_RESERVATION_BUS_URL: "mysql://bus",
  ORDERS_EVENT_BUS_URL: "mysql://bus",
  POINTS_LEASE_MS: "soon",
  POSTGRES_PORT: "none",
  EVENT_BUS_KEEP_DAYS: "7",
};

test("commands without a name act on the services that have a database, and ignore the others", async () => {
  await using t = await testDatabase();
  const env = { ...(await freePorts()), ...unusable, ENTITLEMENT_DATABASE_URL: t.url };
  const migrated = await runTodoke("migrate", env);
  expect(migrated).toMatchObject({ code: 0, err: "" });
  expect(new Set(migrated.out.match(/^ {2}\S+/gm))).toEqual(new Set(["  entitlement"]));
  const schemas = await t
    .open()
    .query(`select nspname from pg_namespace where nspname ~ '^(account|points|entitlement)'`);
  expect(schemas.rows).toEqual([{ nspname: "entitlement" }]);

  const doctor = await runTodoke("doctor --json", env);
  const { findings }: { findings: Finding[] } = JSON.parse(doctor.out);
  // The test server is not durable, and `doctor` says so.
  const isOfTestServer = ({ says }: Finding) => /^(fsync|full_page_writes) is off/.test(says);
  expect(findings.filter((finding) => finding.level === "fault" && !isOfTestServer(finding))).toEqual([]);
  expect(new Set(findings.map(({ of }) => of)).isDisjointFrom(new Set(["database", "points", "account"]))).toBe(true);

  const created = await runTodoke("keys create shop --scopes read --services all --json", env);
  expect(JSON.parse(created.out)).toMatchObject({ services: ["entitlement"] });
  expect(await runTodoke("keys revoke shop", env)).toMatchObject({
    code: 0,
    err: "Not revoked in account, notification, matchmaking, points, orders, gateway-bff: no database of theirs is set here.\n",
  });
  expect(await runTodoke("dead list", env)).toEqual({ code: 0, out: "There are no dead letters.\n", err: "" });
});

test("a named service needs its database, and nothing of the others", async () => {
  const env = { ...unusable, ENTITLEMENT_DATABASE_URL: "postgres://db.example/x" };
  const missing = "✗ points: set DATABASE_URL or POINTS_DATABASE_URL to a PostgreSQL server\n";
  expect(await runTodoke("audit points", env)).toMatchObject({ code: 2, err: missing });
  expect(await runTodoke("keys list --services points,entitlement", env)).toMatchObject({ code: 2, err: missing });
  expect((await runTodoke("serve points entitlement", env)).err.split("\n")).toEqual(
    expect.arrayContaining([missing.trim(), expect.stringMatching(/^✗ points: POINTS_LEASE_MS is "soon"/)]),
  );
  const { err } = await runTodoke("serve entitlement", env);
  expect(err).toBe("✗ set EVENT_BUS_URL: without DATABASE_URL, services share no database for the bus\n");
});

test("without any database, one error says what to set", async () => {
  expect(await runTodoke("migrate")).toMatchObject({
    code: 2,
    err: "✗ account, entitlement, notification, matchmaking, points, orders, gateway-bff: set DATABASE_URL or <SERVICE>_DATABASE_URL to a PostgreSQL server\n",
  });
});

test("a database without an OpenID provider is no fault; the gateway's settings are checked when it is named", async () => {
  await using t = await servicesDatabase();
  const env = { ...(await freePorts()), DATABASE_URL: t.url };
  const check = async (args: string, more = {}) => {
    const { out } = await runTodoke(`doctor ${args} --json`, { ...env, ...more });
    const { findings }: { findings: Finding[] } = JSON.parse(out);
    return findings.filter(({ of, level }) => of === "gateway-bff" && level === "fault").map(({ says }) => says);
  };
  expect(await check("")).toEqual([]);
  expect(await check("gateway-bff")).toContainEqual(expect.stringMatching(/^OIDC_CLIENT_ID is not set/));
  const issuer = { OIDC_ISSUER: "http://127.0.0.1:1" };
  expect(await check("", issuer)).toContainEqual(expect.stringMatching(/^OIDC_CLIENT_ID is not set/));
});
