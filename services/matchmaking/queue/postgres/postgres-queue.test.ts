import { CommitUnknown, type Db, sqlStateOf, transaction } from "@todoke/kernel/db";
import { openOutbox } from "@todoke/kernel/outbox";
import { openWire, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { recordEnds } from "../record-ends.ts";
import {
  duels,
  expectConsistent,
  joinInOrder,
  matchedTicketIds,
  mode,
  readStored,
  terms,
  ticketRequest,
} from "../testing.ts";
import { openTicketIds } from "../ticket-id.ts";
import { openPostgresQueue } from "./index.ts";
import { createPostgresHarness } from "./testing.ts";

const isBlocked = async (db: Db) =>
  (await db.query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))
    .rowCount === 1;

/** Whether rows of the table are locked, in this database: cloned databases have the same table OIDs. */
const isLocked = async (db: Db, table: string) =>
  (
    await db.query(
      `select from pg_locks
        where database = (select oid from pg_database where datname = current_database())
          and relation = $1::regclass and mode in ('RowShareLock', 'RowExclusiveLock') and granted`,
      [table],
    )
  ).rowCount !== 0;

test.each(["request", "answer"] as const)(
  "a join whose %s is lost is unknown, and repeating it returns the actual result",
  async (lost) => {
    await using t = await createPostgresHarness();
    await using wire = await openWire(t.url);
    const queue = t.open({ url: wire.url });
    await queue.join(ticketRequest());
    const mine = ticketRequest();
    wire.cutNext("join tickets", lost);
    await expect(queue.join(mine)).rejects.toBeInstanceOf(CommitUnknown);
    const joined = await queue.join(mine);
    expect(joined).toMatchObject({ kind: "new", replayed: lost === "answer" });
    expect((await queue.sweep(mode)).waiting).toBe(2);
  },
);

test.each(["request", "answer"] as const)(
  "a match whose COMMIT %s is lost is made once or not at all",
  async (lost) => {
    await using t = await createPostgresHarness();
    await using wire = await openWire(t.url);
    const queue = t.open({ url: wire.url });
    const ids = await joinInOrder(queue, 4);
    wire.cutNext("commit", lost);
    await expect(queue.matchInOrder(mode, duels)).rejects.toBeInstanceOf(CommitUnknown);
    expect(t.recorded).toEqual([]); // An unknown commit is not reported.
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: lost === "answer" ? 0 : 2 });
    expect((await readStored(t.db)).ended("MATCHED").sort()).toEqual([...ids].sort());
    await expectConsistent(t.db);
    const [id = ""] = await joinInOrder(queue, 1);
    wire.cutNext("commit", lost);
    await expect(queue.cancel(id)).rejects.toBeInstanceOf(CommitUnknown);
    expect(await queue.cancel(id)).toBe("CANCELLED");
  },
);

test("a crash between any two statements of a match changes nothing", async () => {
  await using t = await createPostgresHarness();
  await using wire = await openWire(t.url);
  const queue = t.open({ url: wire.url });
  const ids = await joinInOrder(queue, 2);
  for (const step of ["lock mode", "lock oldest", "recorded ends", "insert ends", "outbox append", "delete tickets"]) {
    const cut = wire.cutNext(step, "answer");
    await expect(queue.matchInOrder(mode, duels), step).rejects.toThrow();
    await cut;
    const { tickets } = await t.open().snapshot(mode, 10);
    expect(tickets.map(({ ticketId }) => ticketId)).toEqual(ids);
    expect(await readStored(t.db)).toMatchObject({ ends: [], matches: [], events: [] });
  }
  expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 1 });
  await expectConsistent(t.db);
});

test("a ticket with a recorded end leaves the queue and is not matched", async () => {
  await using t = await createPostgresHarness();
  const queue = t.open();
  const [a = "", b = "", c = ""] = await joinInOrder(queue, 3);
  const ticket = (await queue.find(a))?.ticket;
  if (!ticket) throw new Error("the ticket should be open");
  const ends = [{ kind: "cancelled", ticket, endedAt: ticket.joinedAt }] as const;
  await transaction(t.db, (tx) => recordEnds(tx, ends, { outbox: openOutbox() }));
  expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 1 });
  expect((await matchedTicketIds(t.db)).map((pair) => [...pair].sort())).toEqual([[b, c].sort()]);
  expect(await queue.cancel(a)).toBe("CANCELLED");
  expect(await queue.sweep(mode)).toMatchObject({ waiting: 0 });
  expect(t.recorded.map(({ result }) => result.kind)).toEqual(["void", "recorded"]);
  await expectConsistent(t.db);
});

test("ends are reported after their commit, and not if it fails", async () => {
  await using t = await createPostgresHarness();
  const queue = t.open();
  const [a = "", b = "", c = ""] = await joinInOrder(queue, 3);
  await queue.settle(mode, [{ seats: [a, b].map((ticketId) => ({ ticketId, team: 1 })) }], terms);
  await queue.cancel(c);
  await queue.cancel(c);
  expect(t.recorded.map(({ end }) => end.kind)).toEqual(["match", "cancelled"]);
  const broken = openPostgresQueue({
    db: t.db,
    outbox: { append: () => Promise.reject(new Error("append failed")) },
    onRecorded: (ends) => t.recorded.push(...ends),
  });
  const [d = ""] = await joinInOrder(queue, 2);
  await expect(broken.matchInOrder(mode, duels)).rejects.toThrow("append failed");
  expect(t.recorded).toHaveLength(2);
  expect((await queue.find(d))?.status).toBe("QUEUED");
});

test("a matcher that waited for another one also sees tickets that joined in between", async () => {
  await using t = await createPostgresHarness();
  const [queue, other] = [t.open(), t.open()];
  const outbox = openOutbox();
  const gate = Promise.withResolvers<void>();
  const slow = openPostgresQueue({
    db: t.db,
    outbox: {
      async append(tx, ...events) {
        await gate.promise;
        await outbox.append(tx, ...events);
      },
    },
  });
  const ids = await joinInOrder(queue, 3);
  const first = slow.matchInOrder(mode, duels);
  await until("the first one holds its tickets", () => isLocked(t.db, "tickets"));
  const second = other.matchInOrder(mode, duels);
  await until("the second one waits", () => isBlocked(t.db));
  ids.push(...(await joinInOrder(queue, 1)));
  gate.resolve();
  expect([await first, await second]).toEqual([{ made: 1 }, { made: 1 }]);
  expect((await matchedTicketIds(t.db)).map((pair) => [...pair].sort())).toEqual([
    ids.slice(0, 2).sort(),
    ids.slice(2).sort(),
  ]);
});

test("a heartbeat during matching does not change the join order", async () => {
  await using t = await createPostgresHarness();
  const queue = t.open();
  const [first = "", second = ""] = await joinInOrder(queue, 4, { heartbeatMs: 60_000 });
  const other = await t.db.connect();
  await other.query("begin");
  await other.query(`update tickets set alive_until = expires_at where ticket_id = $1`, [first]);
  const matching = queue.matchInOrder(mode, { ...duels, matchesMax: 1 });
  await until("the match waits for it", () => isBlocked(t.db));
  await other.query("commit");
  other.release();
  expect(await matching).toEqual({ made: 1 });
  expect((await matchedTicketIds(t.db)).flat().sort()).toEqual([first, second].sort());
  await expectConsistent(t.db);
});

test("a locked expired ticket does not block the sweep of others", async () => {
  await using t = await createPostgresHarness();
  const queue = t.open();
  const [stuck = "", free = ""] = await joinInOrder(queue, 2, { ticketMs: 1 });
  const other = await t.db.connect();
  await other.query("begin");
  await other.query(`select from tickets where ticket_id = $1 for update`, [stuck]);
  await until("the other one is swept", async () => {
    await queue.sweep(mode);
    return (await readStored(t.db)).ended("EXPIRED").includes(free);
  });
  await other.query("rollback");
  other.release();
  await until("both are", async () => (await queue.sweep(mode)).expired === 1);
  await expectConsistent(t.db);
});

test("the database rejects a second open ticket of a user and an ID of another mode", async () => {
  await using t = await createPostgresHarness();
  const insert = (ticketId: string, of: string) =>
    t.db
      .query(
        `insert into tickets (ticket_id, mode, user_id, party_size, attributes, avoid, joined_at, expires_at, alive_until)
         values ($1, $2, 'u_1', 1, '{}', '{}', now(), now(), now())`,
        [ticketId, of],
      )
      .then(() => "taken", sqlStateOf);
  const newId = () => openTicketIds([]).create("duel", "u_1");
  expect(await insert(newId(), "duel")).toBe("taken");
  expect(await insert(newId(), "duel")).toBe("23505");
  expect(await insert(newId(), "ranked")).toBe("23514");
});
