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

interface Said {
  readonly user: string;
  readonly version: number;
  readonly status?: "ACTIVE" | "SUSPENDED" | "DELETED" | "FROZEN";
}

/** An event that no consumer has seen, as the bus brings it. */
function event(eventType: string, { user, version, status = "ACTIVE" }: Said): Delivery {
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

/** A process with the role consumer, whose queue has no connections but those of its inbox. */
async function listening(redisUrl?: string, more: Partial<InboxOptions<UserState>> = {}) {
  const t = await createHarness(redisUrl === undefined ? {} : { redisUrl });
  // Long enough for all who wait their turn; who needs a connection beside their own would wait in vain.
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
      const onRecord = async () => (await selectTicketEnd(t.db, ticketId))?.status;
      // A recorder may put it on record, and strike it off the queue, between the two looks.
      return (await onRecord()) ?? (await queue.find(ticketId))?.status ?? (await onRecord());
    },
  };
}

describe.each(["postgres", "redis"] as const)("account's events, with the queue in %s", (store) => {
  const openHarness = () => listening(store === "redis" ? redis.url : undefined);

  test("who is suspended or deleted waits in no mode any more; who is not waits on", async () => {
    await using t = await openHarness();
    const tickets = [await t.join("u_1"), await t.join("u_1", "squad"), await t.join("u_2"), await t.join("u_3")];
    const statuses = () => Promise.all(tickets.map(t.statusOf));
    const created = event("AccountCreated", { user: "u_1", version: 1 });
    const changed = event("AccountRolesChanged", { user: "u_3", version: 2 });
    expect(await t.kinds(created, changed)).toEqual(["done", "done"]);
    expect(await statuses()).toEqual(["QUEUED", "QUEUED", "QUEUED", "QUEUED"]);

    expect(await t.kinds(suspended("u_1", 2), deleted("u_2", 2))).toEqual(["done", "done"]);
    expect(await statuses()).toEqual(["CANCELLED", "CANCELLED", "CANCELLED", "QUEUED"]);
    const told = await t.db.query(`select event_type from outbox_events`);
    expect(told.rows).toEqual([]);
    // Roles that change during a suspension do not end it.
    const ticket = await t.join("u_1");
    await t.kinds(event("AccountRolesChanged", { user: "u_1", version: 3, status: "SUSPENDED" }));
    expect(await t.statusOf(ticket)).toBe("CANCELLED");
  });

  test("a suspension that is told late, or again, ends no ticket that was taken since it was lifted", async () => {
    await using t = await openHarness();
    const first = suspended("u_1", 2);
    await t.kinds(first);
    await t.kinds(reinstated("u_1", 3));
    const ticket = await t.join("u_1");
    // The same event, and one that the inbox has forgotten.
    expect(await t.kinds({ ...first, redelivered: true }, suspended("u_1", 2))).toEqual(["done", "done"]);
    expect(await t.statusOf(ticket)).toBe("QUEUED");
    // Of two that come together the last word counts, in whatever order.
    await t.kinds(reinstated("u_1", 5), suspended("u_1", 4));
    expect(await t.statusOf(ticket)).toBe("QUEUED");
    await t.kinds(suspended("u_1", 6));
    expect(await t.statusOf(ticket)).toBe("CANCELLED");
  });

  test("a reinstatement that overtakes its suspension leaves the player in the queue", async () => {
    await using t = await openHarness();
    await t.kinds(reinstated("u_1", 3));
    const ticket = await t.join("u_1");
    await t.kinds(suspended("u_1", 2));
    expect(await t.statusOf(ticket)).toBe("QUEUED");
  });

  test("many at once need no connection but their own", async () => {
    await using t = await openHarness();
    const users = Array.from({ length: 12 }, (_, n) => `u_${n}`);
    const tickets = await Promise.all(users.map((user) => t.join(user)));
    const answers = await Promise.all(users.map((user) => t.kinds(suspended(user, 2))));
    expect(new Set(answers.flat())).toEqual(new Set(["done"]));
    expect(new Set(await Promise.all(tickets.map(t.statusOf)))).toEqual(new Set(["CANCELLED"]));
  });

  test("a try that fails after the tickets were ended is done again, and they have ended once", async () => {
    let failures = 3;
    const fails = (run: () => Promise<void>) => async () => {
      await run();
      if (failures-- > 0) throw new Error("the connection is gone");
    };
    await using t = await listening(store === "redis" ? redis.url : undefined, {
      effect: (tx, told) => fails(() => t.effect(tx, told))(),
    });
    const ticket = await t.join("u_1");
    const told = suspended("u_1", 2);
    await until("it took effect", async () => (await t.kinds({ ...told, redelivered: true }))[0] === "done");
    // The last try may find nothing that waits before a recorder has written down what the first one ended.
    await until("it is on record", async () => (await selectTicketEnd(t.db, ticket)) !== undefined);
    const { rows } = await t.db.query(`select status from ticket_ends`);
    expect(rows).toEqual([{ status: "CANCELLED" }]);
  });
});

test("while Redis is away an event waits, and takes effect when Redis is back", async () => {
  // It has the ticket when it is back: by the second, a busy disk would choose.
  await using engine = await startEngine("redis", { settings: { appendfsync: "always" } });
  await using t = await listening(engine.url);
  const ticket = await t.join("u_1");
  await engine.kill();
  const told = suspended("u_1", 2);
  for (let tries = 0; tries < 15; tries++)
    expect(await t.kinds({ ...told, redelivered: tries > 0 })).toEqual(["release"]);
  await engine.start();
  const answers = () =>
    t.queue.find(ticket).then(
      () => true,
      () => false,
    );
  await until("Redis answers", answers);
  // Where a recorder was faster with the end, this try fails and is to be done again.
  const answered: string[] = [];
  await until("it takes effect", async () => {
    answered.push(...(await t.kinds({ ...told, redelivered: true })));
    return answered.at(-1) === "done";
  });
  expect(["done", "retry,done"]).toContain(answered.join());
  expect(await t.statusOf(ticket)).toBe("CANCELLED");
});

test("what this build does not know is put away, and not guessed at", () => {
  const unknown = {
    ...event("AccountDeleted", { user: "u_1", version: 2, status: "DELETED" }),
    eventType: "AccountMoved",
  };
  expect(() => readEvent(unknown)).toThrow("not a type of event");
  const frozen = event("AccountRolesChanged", { user: "u_1", version: 2, status: "FROZEN" });
  expect(() => readEvent(frozen)).toThrow("not a status");
});
