import { sharedRedis } from "@todoke/redis/testing";
import { describe, expect, test } from "vitest";
import { duels, readStored } from "../queue/testing.ts";
import { createHarness } from "../testing.ts";

const redis = sharedRedis();

describe.each(["postgres", "redis"] as const)("queue routes, with the queue in %s", (store) => {
  const openHarness = () => createHarness(store === "redis" ? { redisUrl: redis.url } : {});

  test("a repeated key returns the same bytes, and another key returns the open ticket", async () => {
    await using t = await openHarness();
    const [one, other] = [await t.process(), await t.process()];
    const first = await one.join("u_1", "duel", {}, "key-1");
    expect([first.statusCode, first.headers["idempotency-replayed"]]).toEqual([201, undefined]);
    expect(first.json()).toEqual({
      ticket_id: expect.stringMatching(/^duel\.[\w-]{28}$/),
      status: "QUEUED",
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    // party_size defaults to 1, so this is the same request.
    const again = await other.join("u_1", "duel", { party_size: 1, attributes: {} }, "key-1");
    expect([again.statusCode, again.body, again.headers["idempotency-replayed"]]).toEqual([201, first.body, "true"]);
    const open = await other.join("u_1", "duel", {}, "key-2");
    expect([open.statusCode, open.body, open.headers["idempotency-replayed"]]).toEqual([200, first.body, undefined]);
    expect([...one.joins, ...other.joins]).toEqual(["duel"]);
  });

  test("a different request beside an open ticket is 409 ticket-open; modes are independent", async () => {
    await using t = await openHarness();
    const { join, call, joins } = await t.process();
    const { ticket_id } = (await join("u_1", "duel", {}, "key-1")).json();
    const conflict = await join("u_1", "duel", { attributes: { map: "ice" } }, "key-1");
    expect([conflict.statusCode, conflict.json().code]).toEqual([409, "idempotency-conflict"]);
    const open = await join("u_1", "duel", { attributes: { map: "ice" } }, "key-2");
    expect([open.statusCode, open.json().code]).toEqual([409, "ticket-open"]);
    expect(open.json().detail).toContain(ticket_id);
    const ranked = await join("u_1", "ranked", { attributes: { skill: 1_500 } }, "key-1");
    expect(ranked.statusCode).toBe(201);
    expect((await join("u_2", "duel", {}, "key-1")).statusCode).toBe(201);
    expect(joins).toEqual(["duel", "ranked", "duel"]);
    const stats = (await call("GET", "/queues/duel/stats", { as: "u_1" })).json();
    expect(stats).toMatchObject({ mode: "duel", waiting: 2, oldest_wait_seconds: expect.any(Number) });
  });

  test("a back-end joins for a user once per key, and the ticket belongs to the user", async () => {
    await using t = await openHarness();
    t.changeRules((modes) => {
      const ranked = modes.get("ranked");
      if (ranked) modes.set("ranked", { ...ranked, setByBackend: ["skill", "party_size"] });
    });
    const { call, join, show, joins } = await t.process();
    const joinFor = (user: string, skill: number, key: string) =>
      call("POST", `/users/${user}/queues/ranked/tickets`, {
        as: "key:game",
        payload: { attributes: { skill } },
        headers: { "idempotency-key": key },
      });
    for (const payload of [{ attributes: { skill: 9_000 } }, {}]) {
      const refused = await join("u_1", "ranked", payload, "own");
      expect([refused.statusCode, refused.json()]).toMatchObject([
        403,
        { code: "set-by-backend", errors: [{ field: "body.attributes.skill" }] },
      ]);
    }
    const first = await joinFor("u_1", 1_500, "k1");
    expect(first.statusCode).toBe(201);
    const { ticket_id: id } = first.json();
    expect(await show("u_1", id)).toMatchObject({ status: "QUEUED", attributes: { skill: 1_500 } });
    const again = await joinFor("u_1", 1_500, "k1");
    expect([again.statusCode, again.body, again.headers["idempotency-replayed"]]).toEqual([201, first.body, "true"]);
    // The same key for another user is another request and must not return the first user's ticket.
    expect((await joinFor("u_2", 1_500, "k1")).json().code).toBe("idempotency-conflict");
    expect((await joinFor("u_2", 1_500, "k2")).statusCode).toBe(201);
    expect(joins).toEqual(["ranked", "ranked"]);
    const { queues } = (await call("GET", "/queues", { as: "u_1" })).json();
    expect(queues.find(({ mode }: { mode: string }) => mode === "ranked").set_by_backend).toEqual([
      "skill",
      "party_size",
    ]);
  });

  test("queue figures and wait estimates come from recently matched tickets", async () => {
    await using t = await openHarness();
    const { ticketOf, queue, call, show } = await t.process();
    for (const user of ["u_1", "u_2"]) await ticketOf(user, "duel");
    await queue.matchInOrder("duel", duels);
    const ended = async () => (await readStored(t.db)).ended("MATCHED").length === 2;
    await expect.poll(ended).toBe(true);
    await t.db.query(`update ticket_ends set joined_at = ended_at - interval '40 seconds'`);
    const before = Date.now();
    const waiting = await ticketOf("u_3", "duel");
    const { statusCode, ...stats } = await call("GET", "/queues/duel/stats", { as: "key:shop" });
    expect([statusCode, stats.json()]).toEqual([
      200,
      {
        mode: "duel",
        waiting: 1,
        oldest_wait_seconds: expect.any(Number),
        time_to_match_seconds: { p50: 40, p90: 40, p99: 40 },
        estimated_wait_seconds: 40,
      },
    ]);
    const { estimated_wait_seconds } = await show("u_3", waiting);
    // The rest of the forty seconds that the others have waited.
    expect(estimated_wait_seconds).toBeGreaterThanOrEqual(40 - (Date.now() - before) / 1_000);
    expect(estimated_wait_seconds).toBeLessThanOrEqual(40);
  });
});

test("modes are listed with their requirements; an unknown mode is 404 with the list", async () => {
  await using t = await createHarness();
  const { call, join } = await t.process();
  const { queues } = (await call("GET", "/queues", { as: "u_1" })).json();
  expect(queues).toMatchObject([
    { mode: "duel", teams: 2, team_size: 1, party_max: 1, ticket_seconds: 600, attributes: [] },
    { mode: "ranked", heartbeat_seconds: 30, attributes: [{ name: "skill", is: "number" }] },
    { mode: "squad", teams: 2, team_size: 4, party_max: 4 },
  ]);
  for (const answer of [await join("u_1", "chess"), await call("GET", "/queues/chess/stats", { as: "u_1" })]) {
    expect([answer.statusCode, answer.json().code]).toEqual([404, "unknown-mode"]);
    expect(answer.json().detail).toBe("There is no mode chess. The modes are duel, ranked, squad.");
  }
});

test("a change of rules applies to the next join", async () => {
  await using t = await createHarness();
  const { join, call } = await t.process();
  t.changeRules((modes) => {
    const duel = modes.get("duel");
    if (duel) modes.set("trio", { ...duel, mode: "trio", teams: 3 });
    modes.delete("duel");
  });
  expect((await join("u_1", "duel")).statusCode).toBe(404);
  expect((await join("u_1", "trio")).statusCode).toBe(201);
  const { queues } = (await call("GET", "/queues", { as: "u_1" })).json();
  expect(queues.map(({ mode }: { mode: string }) => mode)).toEqual(["ranked", "squad", "trio"]);
});

test("a ticket avoids the user's last opponents if its mode has that rule", async () => {
  await using t = await createHarness();
  const { ticketOf, queue } = await t.process();
  const met = async (mode: string, attributes: object) => {
    const ids = [await ticketOf("u_1", mode, { attributes }), await ticketOf("u_2", mode, { attributes })];
    const seats = ids.map((ticketId, index) => ({ ticketId, team: index + 1 }));
    await queue.settle(mode, [{ seats }], { rulesVersion: "v1", session: {} });
    const found = await queue.find(await ticketOf("u_1", mode, { attributes }));
    return found?.ticket.avoid;
  };
  expect(await met("ranked", { skill: 1_500 })).toEqual(["u_2"]);
  expect(await met("duel", {})).toEqual([]);
});

const bad: readonly (readonly [name: string, payload: unknown, status: number, field: string])[] = [
  ["an unknown field", { user_id: "u_2" }, 400, "body.user_id"],
  ["no object", [], 400, "body"],
  ["a party of none", { party_size: 0 }, 400, "body.party_size"],
  ["a party of half", { party_size: 1.5 }, 400, "body.party_size"],
  ["a party as text", { party_size: "2" }, 400, "body.party_size"],
  ["a crowd", { party_size: 65 }, 400, "body.party_size"],
  ["attributes that are none", { attributes: [] }, 400, "body.attributes"],
  ["a name with capitals", { attributes: { Skill: 1 } }, 400, "body.attributes.Skill"],
  ["a name that is too long", { attributes: { ["a".repeat(65)]: 1 } }, 400, `body.attributes["${"a".repeat(64)}…"]`],
  ["null", { attributes: { skill: null } }, 400, "body.attributes.skill"],
  ["a long text", { attributes: { skill: "x".repeat(129) } }, 400, "body.attributes.skill"],
  ["a long list", { attributes: { skill: Array(17).fill("eu") } }, 400, "body.attributes.skill"],
  ["a list of numbers", { attributes: { skill: [1] } }, 400, "body.attributes.skill"],
  ["deeper than it goes", { attributes: { skill: { eu: { ms: 1 } } } }, 400, "body.attributes.skill"],
  [
    "too many",
    { attributes: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`a${n}`, 1])) },
    400,
    "body.attributes",
  ],
  [
    "more than 4 kB in all",
    { attributes: Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`a${n}`, "界".repeat(60)])) },
    400,
    "body.attributes",
  ],
  ["nothing of what the mode asks for", { attributes: {} }, 422, "body.attributes.skill"],
  ["another kind than it asks for", { attributes: { skill: "high" } }, 422, "body.attributes.skill"],
  ["too large a party for the mode", { party_size: 2, attributes: { skill: 1 } }, 422, "body.party_size"],
];

test("an invalid join is rejected with the field's name, and nothing is stored", async () => {
  await using t = await createHarness();
  const { join, call, joins } = await t.process();
  for (const [name, payload, status, field] of bad) {
    const answer = await join("u_1", "ranked", payload, "key-1");
    const { code, errors } = answer.json();
    expect([name, answer.statusCode, errors?.[0]?.field]).toEqual([name, status, field]);
    const expectedCode = field === "body.party_size" ? "party-too-large" : "attributes-unfit";
    if (status === 422) expect(code).toBe(expectedCode);
  }
  const headers = { "content-type": "application/json" };
  const keyless = await call("POST", "/queues/ranked/tickets", { as: "u_1", headers, payload: {} });
  expect(keyless.json().code).toBe("idempotency-key-missing");
  expect((await join("u_1", "RANKED")).json().errors[0].field).toBe("path.mode");
  const kept = await t.db.query(`select (select count(*) from tickets) + (select count(*) from idempotency_keys) as n`);
  expect(Number(kept.rows[0].n)).toBe(0);
  expect(joins).toEqual([]);
  // The key is still unused.
  expect((await join("u_1", "ranked", { attributes: { skill: 1_500 } }, "key-1")).statusCode).toBe(201);
});
