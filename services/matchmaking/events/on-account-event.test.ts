import { encodeEvent } from "@todoke/contracts";
import { startEngine } from "@todoke/engines";
import type { Delivery } from "@todoke/kernel/bus";
import { type InboxOptions, openInbox } from "@todoke/kernel/inbox";
import { fixedId, until } from "@todoke/kernel/testing";
import { sharedRedis } from "@todoke/redis/testing";
import { describe, expect, test } from "vitest";
import { ticketRequest } from "../queue/testing.ts";
import { selectTicketEnd } from "../store/ended-tickets.ts";
import { createHarness } from "../testing.ts";
import { onAccountEvent, readEvent, type UserState } from "./on-account-event.ts";

const redis = sharedRedis();
const never = new AbortController().signal;

let ids = 1;

interface EventInput {
  readonly user: string;
  readonly version: number;
  readonly status?: "ACTIVE" | "SUSPENDED" | "DELETED" | "FROZEN";
}

/** A new event, as the bus delivers it. */
function event(eventType: string, { user, version, status = "ACTIVE" }: EventInput): Delivery {
  const [eventId, occurredAt] = [fixedId(ids++), "2026-01-08T07:10:00.123456Z"];
  const head = { event_id: eventId, event_type: eventType, occurred_at: occurredAt };
  const roles = status === "DELETED" ? null : "USER";
  const reason = eventType === "AccountSuspended" || eventType === "AccountReinstated" ? { reason: "cheating" } : {};
  const payload = encodeEvent(eventType, {
    ...head,
    version: String(version),
    user_id: user,
    status,
    roles,
    ...reason,
  });
  const about = { subject: "account.events", aggregateKey: user, headers: {}, redelivered: false };
  return { ...about, eventId, eventType, occurredAt, payload };
}

const suspended = (user: string, version: number) => event("AccountSuspended", { user, version, status: "SUSPENDED" });
const reinstated = (user: string, version: number) => event("AccountReinstated", { user, version });
const deleted = (user: string, version: number) => event("AccountDeleted", { user, version, status: "DELETED" });

/** A process with the role consumer, whose queue and inbox share one pool. */
async function createConsumer(redisUrl?: string, more: Partial<InboxOptions<UserState>> = {}) {
  const t = await createHarness(redisUrl === undefined ? {} : { redisUrl });
  // Long enough for all events in turn; an event that needs a second connection would time out.
  const db = t.open({ poolMax: 2, connectTimeoutMs: 30_000 });
  const queue = t.openQueue(db);
  const effect = onAccountEvent({ queue, modes: () => [...t.rules().modes.keys()] });
  const backoff = { baseMs: 1, capMs: 1 };
  const inbox = openInbox({ db, consumer: "matchmaking", read: readEvent, effect, backoff, ...more });
  const kinds = async (...events: Delivery[]) => (await inbox.handle(events, never)).map(({ kind }) => kind);
  return {
    ...t,
    queue,
    effect,
    kinds,
    join: async (userId: string, mode = "duel") => (await queue.join(ticketRequest({ userId, mode }))).ticketId,
    async statusOf(ticketId: string) {
      const recorded = async () => (await selectTicketEnd(t.db, ticketId))?.status;
      // A recorder may record and ack it between the two reads.
      return (await recorded()) ?? (await queue.find(ticketId))?.status ?? (await recorded());
    },
  };
}

describe.each(["postgres", "redis"] as const)("account events, with the queue in %s", (store) => {
  const openHarness = () => createConsumer(store === "redis" ? redis.url : undefined);

  test("a suspended or deleted user's tickets are cancelled in all modes", async () => {
    await using t = await openHarness();
    const tickets = [await t.join("u_1"), await t.join("u_1", "squad"), await t.join("u_2"), await t.join("u_3")];
    const statuses = () => Promise.all(tickets.map(t.statusOf));
    const created = event("AccountCreated", { user: "u_1", version: 1 });
    const changed = event("AccountRolesChanged", { user: "u_3", version: 2 });
    expect(await t.kinds(created, changed)).toEqual(["done", "done"]);
    expect(await statuses()).toEqual(["QUEUED", "QUEUED", "QUEUED", "QUEUED"]);

    expect(await t.kinds(suspended("u_1", 2), deleted("u_2", 2))).toEqual(["done", "done"]);
    expect(await statuses()).toEqual(["CANCELLED", "CANCELLED", "CANCELLED", "QUEUED"]);
    const events = await t.db.query(`select event_type from outbox_events`);
    expect(events.rows).toEqual([]);
    // A change of roles does not end a suspension.
    const ticket = await t.join("u_1");
    await t.kinds(event("AccountRolesChanged", { user: "u_1", version: 3, status: "SUSPENDED" }));
    expect(await t.statusOf(ticket)).toBe("CANCELLED");
  });

  test("a late or repeated suspension cancels no ticket that was joined after its end", async () => {
    await using t = await openHarness();
    const first = suspended("u_1", 2);
    await t.kinds(first);
    await t.kinds(reinstated("u_1", 3));
    const ticket = await t.join("u_1");
    // The same event again, and one whose ID the inbox does not have any longer.
    expect(await t.kinds({ ...first, redelivered: true }, suspended("u_1", 2))).toEqual(["done", "done"]);
    expect(await t.statusOf(ticket)).toBe("QUEUED");
    // In one batch the highest version counts, in any order.
    await t.kinds(reinstated("u_1", 5), suspended("u_1", 4));
    expect(await t.statusOf(ticket)).toBe("QUEUED");
    await t.kinds(suspended("u_1", 6));
    expect(await t.statusOf(ticket)).toBe("CANCELLED");
  });

  test("a reinstatement that arrives before its suspension leaves the ticket open", async () => {
    await using t = await openHarness();
    await t.kinds(reinstated("u_1", 3));
    const ticket = await t.join("u_1");
    await t.kinds(suspended("u_1", 2));
    expect(await t.statusOf(ticket)).toBe("QUEUED");
  });

  test("concurrent events need no connection but their own", async () => {
    await using t = await openHarness();
    const users = Array.from({ length: 12 }, (_, n) => `u_${n}`);
    const tickets = await Promise.all(users.map((user) => t.join(user)));
    const answers = await Promise.all(users.map((user) => t.kinds(suspended(user, 2))));
    expect(new Set(answers.flat())).toEqual(new Set(["done"]));
    expect(new Set(await Promise.all(tickets.map(t.statusOf)))).toEqual(new Set(["CANCELLED"]));
  });

  test("an attempt that fails after the cancel is retried, and the ticket has one end", async () => {
    let failures = 3;
    const fails = (run: () => Promise<void>) => async () => {
      await run();
      if (failures-- > 0) throw new Error("the connection is gone");
    };
    await using t = await createConsumer(store === "redis" ? redis.url : undefined, {
      effect: (tx, states) => fails(() => t.effect(tx, states))(),
    });
    const ticket = await t.join("u_1");
    const event = suspended("u_1", 2);
    await until("it takes effect", async () => (await t.kinds({ ...event, redelivered: true }))[0] === "done");
    // The last attempt may find no waiting ticket before a recorder has recorded what the first one cancelled.
    await until("it is recorded", async () => (await selectTicketEnd(t.db, ticket)) !== undefined);
    const { rows } = await t.db.query(`select status from ticket_ends`);
    expect(rows).toEqual([{ status: "CANCELLED" }]);
  });
});

test("while Redis is unavailable an event is released; afterwards it takes effect", async () => {
  // With fsync once a second, Redis might lose the ticket.
  await using engine = await startEngine("redis", { settings: { appendfsync: "always" } });
  await using t = await createConsumer(engine.url);
  const ticket = await t.join("u_1");
  await engine.kill();
  const event = suspended("u_1", 2);
  for (let attempts = 0; attempts < 15; attempts++)
    expect(await t.kinds({ ...event, redelivered: attempts > 0 })).toEqual(["release"]);
  await engine.start();
  const answers = () =>
    t.queue.find(ticket).then(
      () => true,
      () => false,
    );
  await until("Redis answers", answers);
  // If a recorder was first, this attempt fails and is retried.
  const outcomes: string[] = [];
  await until("it takes effect", async () => {
    outcomes.push(...(await t.kinds({ ...event, redelivered: true })));
    return outcomes.at(-1) === "done";
  });
  expect(["done", "retry,done"]).toContain(outcomes.join());
  expect(await t.statusOf(ticket)).toBe("CANCELLED");
});

test("an unknown event type or user status throws", () => {
  const unknown = {
    ...event("AccountDeleted", { user: "u_1", version: 2, status: "DELETED" }),
    eventType: "AccountMoved",
  };
  expect(() => readEvent(unknown)).toThrow("not an account event");
  const frozen = event("AccountRolesChanged", { user: "u_1", version: 2, status: "FROZEN" });
  expect(() => readEvent(frozen)).toThrow("not a user status");
});
