import { encodeEvent } from "@todoke/contracts";
import { type Envelope, type Handle, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { keepSubscribed, openInbox } from "@todoke/kernel/inbox";
import { fixedId, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { answersAbout, onAccountEvent, readEvent } from "./on-account-event.ts";
import { alice, bob, setup, userView } from "./testing.ts";
import { answering, hangingUp } from "./upstreams/testing.ts";
import { whileAccountAnswers } from "./while-account-answers.ts";

/** Event number n about alice, as the bus brings it. */
function event(
  n: number,
  eventType: string,
  { version = n, ...said }: { version?: number } & Record<string, unknown> = {},
): Envelope {
  const head = { event_id: fixedId(n), event_type: eventType, occurred_at: "2026-01-08T07:10:00.123456Z" };
  const payload = encodeEvent(eventType, { ...head, version: String(version), user_id: alice, ...said });
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
  const account = t.account;
  const inbox = openInbox({
    db: t.db,
    consumer: "gateway-bff",
    read: readEvent,
    effect: onAccountEvent({ sessions: t.sessions, account }),
    backoff: { baseMs: 5, capMs: 20 },
    onError,
  });
  const waiting = whileAccountAnswers(inbox.handle, { answers: answersAbout(account), againMs: 10 });
  let handled = 0;
  const handle: Handle = (...batch) => {
    handled++;
    return waiting(...batch);
  };
  let subscribed = false;
  const watched = {
    subscribe: async (wish: Parameters<typeof bus.subscribe>[0]) => {
      const subscription = await bus.subscribe(wish);
      subscribed = true;
      return subscription;
    },
  };
  parts.use(
    keepSubscribed({
      bus: watched,
      consumer: "gateway-bff",
      subjects: ["account.events"],
      handle,
      onError,
    }),
  );
  await until("it listens", () => subscribed);
  const processed = async () => Number((await t.db.query(`select count(*) from processed_events`)).rows[0].count);
  const all = parts.move();
  return {
    ...t,
    processed,
    /** How many batches have come. */
    handled: () => handled,
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

test("a suspension that only the event tells of shuts the user out, and the end of it lets them in with their roles", async () => {
  await using t = await listening();
  const [player, other] = [await t.logIn(alice, { roles: ["ADMIN", "USER"] }), await t.logIn(bob)];
  await t.tell(event(2, "AccountSuspended", { reason: "cheating" }));
  expect([await t.me(player), await t.me(other)]).toEqual([401, 200]);
  expect(await t.me(await t.logIn(alice))).toBe(403);

  t.services.account.behave(answering(userView(alice, { version: 3, roles: ["ADMIN", "USER"] })));
  await t.tell(event(3, "AccountReinstated", { reason: "a mistake" }));
  const again = await t.logIn(alice);
  expect(await t.me(again)).toBe(200);
  const found = await t.sessions.find(again.headers.authorization.slice("Bearer ".length));
  expect(found).toMatchObject({ status: "ACTIVE", roles: ["ADMIN", "USER"] });
});

test("other roles count from the event on, and a change of roles does not let a suspended user in", async () => {
  await using t = await listening();
  const player = await t.logIn(alice, { roles: ["ADMIN", "USER"] });
  t.services.account.behave(answering(userView(alice, { version: 2, roles: ["USER"] })));
  await t.tell(event(2, "AccountRolesChanged", { roles: "USER" }));
  expect(await t.sessions.find(player.headers.authorization.slice("Bearer ".length))).toMatchObject({
    roles: ["USER"],
  });

  t.services.account.behave(answering(userView(alice, { version: 4, status: "SUSPENDED" })));
  await t.tell(
    event(3, "AccountSuspended", { reason: "cheating" }),
    event(4, "AccountRolesChanged", { roles: "ADMIN,USER" }),
  );
  expect(await t.me(await t.logIn(alice))).toBe(403);
});

test("a deleted user never comes back, and an event that comes late or twice changes nothing", async () => {
  await using t = await listening();
  const player = await t.logIn(alice, { version: 5 });
  await t.tell(event(2, "AccountSuspended", { reason: "long ago", version: 4 }));
  expect(await t.me(player)).toBe(200);
  await t.tell(event(3, "AccountCreated", { version: 1 }));
  expect(await t.me(player)).toBe(200);
  await t.tell(event(6, "AccountDeleted"));
  expect(await t.me(player)).toBe(401);
  await expect(t.logIn(alice, { version: 5 })).rejects.toThrow();
});

test("while account is away who is suspended is shut out all the same, and what waits for account waits as long as it takes", async () => {
  await using t = await listening();
  const player = await t.logIn(alice);
  t.services.account.behave(hangingUp);
  await t.tell(event(2, "AccountSuspended", { reason: "cheating" }));
  expect(await t.me(player)).toBe(401);
  const before = t.handled();
  await t.bus.publish([event(3, "AccountReinstated", { reason: "a mistake" })]);
  // More often than an event may fail.
  await until("it was tried again and again", () => t.handled() > before + 15);
  t.services.account.behave(answering(userView(alice, { version: 3 })));
  await until("it took effect", async () => (await t.processed()) === 2);
  expect(await t.me(await t.logIn(alice))).toBe(200);
  const { rows } = await t.db.query(`select from inbox_dlq`);
  expect(rows).toEqual([]);
});

test("a suspension until a time carries that time, to the microsecond", () => {
  const until = "2999-01-31T09:30:00.123457Z";
  expect(readEvent(event(2, "AccountSuspended", { reason: "x", suspended_until: until }))).toEqual({
    userId: alice,
    known: { userId: alice, status: "SUSPENDED", roles: [], version: 2, suspendedUntil: until },
  });
});
