import { randomBytes } from "node:crypto";
import { encodeEvent } from "@todoke/contracts";
import { type Envelope, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { transaction } from "@todoke/kernel/db";
import { inboxDeadLetters, openInbox, subscribeWithRetry } from "@todoke/kernel/inbox";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { postgresSessions } from "../sessions/postgres.ts";
import { alice, bob, setup } from "../testing.ts";
import { onAccountEvent, readEvent } from "./on-account-event.ts";

const never = new AbortController().signal;

/** Event number n about alice, as the bus brings it. */
function event(
  n: number,
  eventType: string,
  { version = n, ...fields }: { version?: number } & Record<string, unknown> = {},
): Envelope {
  const head = { event_id: fixedId(n), event_type: eventType, occurred_at: "2026-01-08T07:10:00.123456Z" };
  const state = { status: "ACTIVE", roles: "USER" };
  const payload = encodeEvent(eventType, { ...head, version: String(version), user_id: alice, ...state, ...fields });
  const { event_id: eventId, occurred_at: occurredAt } = head;
  return { eventId, eventType, subject: "account.events", aggregateKey: alice, occurredAt, headers: {}, payload };
}

async function listening() {
  const t = await setup();
  await using parts = new AsyncDisposableStack();
  parts.use(t);
  const app = await t.process();
  const bus = parts.use(memoryBus(new MemoryBroker()));
  const onError = () => {};
  const inbox = openInbox({
    db: t.db,
    consumer: "gateway-bff",
    decode: readEvent,
    effect: onAccountEvent(t.sessions),
    backoff: { baseMs: 5, capMs: 20 },
    onError,
  });
  let subscribed = false;
  const watched = {
    subscribe: async (options: Parameters<typeof bus.subscribe>[0]) => {
      const subscription = await bus.subscribe(options);
      subscribed = true;
      return subscription;
    },
  };
  parts.use(
    subscribeWithRetry({
      bus: watched,
      consumer: "gateway-bff",
      subjects: ["account.events"],
      handle: inbox.handle,
      onError,
    }),
  );
  await until("it listens", () => subscribed);
  const processed = async () => Number((await t.db.query(`select count(*) from processed_events`)).rows[0].count);
  const all = parts.move();
  return {
    ...t,
    processed,
    async tell(...events: Envelope[]) {
      const before = await processed();
      await bus.publish(events);
      await until("the events took effect", async () => (await processed()) === before + events.length);
    },
    bus,
    me: async ({ headers }: { headers: Record<string, string> }) =>
      (await app.inject({ url: "/v1/me", headers })).statusCode,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

test("a suspension event shuts the user out, and a reinstatement event lets them in", async () => {
  await using t = await listening();
  const [player, other] = [await t.logIn(alice, { roles: ["ADMIN", "USER"] }), await t.logIn(bob)];
  await t.tell(event(2, "AccountSuspended", { status: "SUSPENDED", roles: "ADMIN,USER", reason: "cheating" }));
  expect([await t.me(player), await t.me(other)]).toEqual([401, 200]);
  expect(await t.me(await t.logIn(alice))).toBe(403);

  await t.tell(event(3, "AccountReinstated", { roles: "ADMIN,USER", reason: "a mistake" }));
  const again = await t.logIn(alice);
  expect(await t.me(again)).toBe(200);
  const found = await t.sessions.find(again.headers.authorization.slice("Bearer ".length));
  expect(found?.status).toBe("ACTIVE");
  expect(new Set(found?.roles)).toEqual(new Set(["ADMIN", "USER"]));
});

test("a roles event changes the roles and does not reinstate a suspended user", async () => {
  await using t = await listening();
  const player = await t.logIn(alice, { roles: ["ADMIN", "USER"] });
  await t.tell(event(2, "AccountRolesChanged", { roles: "USER" }));
  expect(await t.sessions.find(player.headers.authorization.slice("Bearer ".length))).toMatchObject({
    roles: ["USER"],
  });

  await t.tell(
    event(3, "AccountSuspended", { status: "SUSPENDED", reason: "cheating" }),
    event(4, "AccountRolesChanged", { status: "SUSPENDED", roles: "ADMIN,USER" }),
  );
  expect(await t.me(await t.logIn(alice))).toBe(403);
});

test("late and repeated events change nothing, and a deletion is final", async () => {
  await using t = await listening();
  const player = await t.logIn(alice, { version: 5 });
  await t.tell(event(2, "AccountSuspended", { status: "SUSPENDED", reason: "long ago", version: 4 }));
  expect(await t.me(player)).toBe(200);
  await t.tell(event(3, "AccountCreated", { version: 1 }));
  expect(await t.me(player)).toBe(200);
  await t.tell(event(6, "AccountDeleted", { status: "DELETED", roles: null }));
  expect(await t.me(player)).toBe(401);
  await expect(t.logIn(alice, { version: 5 })).rejects.toThrow();
});

test("events and redrives use only the connection of their own transaction", async () => {
  await using t = await setup();
  const db = t.open({ poolMax: 1, connectTimeoutMs: 30_000 });
  await using sessions = postgresSessions(db, {
    idleMs: 60_000,
    absoluteMs: 3_600_000,
    perUserMax: 10,
    secrets: [randomBytes(32)],
  });
  const users = [fixedId(100), fixedId(101), fixedId(102)];
  const suspensions = users.map((user_id, n) => ({
    ...event(100 + n, "AccountSuspended", { user_id, status: "SUSPENDED", reason: "cheating", version: 2 }),
    redelivered: false,
  }));
  const players = await Promise.all(users.map((user) => t.logIn(user)));
  const consumer = "gateway-bff";
  const unreadable = () => {
    throw new Error("an older build");
  };
  const older = openInbox({ db, consumer, decode: unreadable, effect: async () => {} });
  await older.handle(suspensions.slice(1), never);
  const deadLetters = inboxDeadLetters(consumer);
  const dead = await deadLetters.list(db, { limit: 100 });
  await deadLetters.redrive(
    db,
    dead.map(({ id }) => id),
    { by: "aki", reason: "deployed" },
  );
  const inbox = openInbox({ db, consumer, decode: readEvent, effect: onAccountEvent(sessions) });
  for (const _ of dead) expect(await inbox.redriver.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(await inbox.handle(suspensions.slice(0, 1), never)).toEqual([{ kind: "done" }]);
  const found = players.map(({ headers }) => sessions.find(headers.authorization.slice("Bearer ".length)));
  expect((await Promise.all(found)).filter(Boolean)).toEqual([]);
});

test("a rolled-back transaction undoes the user's change", async () => {
  await using t = await setup();
  const player = await t.logIn(alice);
  const suspended = { userId: alice, status: "SUSPENDED", roles: ["USER"], version: 2 } as const;
  const undone = transaction(t.db, async (tx) => {
    await onAccountEvent(t.sessions)(tx, [suspended]);
    throw new Error("the mark could not be written");
  });
  await expect(undone).rejects.toThrow("the mark");
  const token = player.headers.authorization.slice("Bearer ".length);
  expect(await t.sessions.find(token)).toMatchObject({ status: "ACTIVE" });
});

test("unknown event types and statuses are errors, and unknown roles are dropped", async () => {
  expect(() => readEvent({ ...event(2, "AccountDeleted"), eventType: "AccountMoved" })).toThrow(
    "not an event type of account",
  );
  expect(() => readEvent(event(2, "AccountRolesChanged", { status: "FROZEN" }))).toThrow("not a user status");
  expect(readEvent(event(2, "AccountRolesChanged", { roles: "ADMIN,JUDGE,USER" })).roles.toSorted()).toEqual([
    "ADMIN",
    "USER",
  ]);
});

test("a suspension's end is exact to the microsecond", () => {
  const suspendedUntil = "2999-01-31T09:30:00.123457Z";
  const fields = { status: "SUSPENDED", reason: "x", suspended_until: suspendedUntil };
  const known = { userId: alice, status: "SUSPENDED", roles: ["USER"], version: 2, suspendedUntil };
  expect(readEvent(event(2, "AccountSuspended", fields))).toEqual(known);
});
