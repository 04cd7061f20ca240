/** Every step at which a crash, a stop or an error matters, and the patch that makes it a failpoint. */
import type { Patch } from "./patch.ts";

export interface Failpoint {
  readonly name: string;
  readonly where: string;
  /** What has happened, and has not, when the process reaches it. */
  readonly meaning: string;
  readonly patches: readonly Patch[];
}

/** The statement that begins with `find` is preceded by the point. */
const before = (file: string, find: string) => (name: string) => ({
  file,
  find,
  replace: `await reach("${name}"); ${find}`,
});

/** The statement `find` is followed by the point. */
const after = (file: string, find: string) => (name: string) => ({
  file,
  find,
  replace: `${find} await reach("${name}");`,
});

/** The statement that begins with `find` is preceded by the point, if anything was done. */
const made = (file: string, find: string, isAny: string) => (name: string) => ({
  file,
  find,
  replace: `if (${isAny}) await reach("${name}"); ${find}`,
});

const point = (name: string, meaning: string, ...places: readonly ((name: string) => Patch)[]): Failpoint => {
  const patches = places.map((place) => place(name));
  return { name, where: patches.map((patch) => patch.file).join(", "), meaning, patches };
};

const command = "services/entitlement/commands/create-change-batcher.ts";
const transaction = "packages/kernel/db/transaction.ts";
const batcher = "packages/kernel/batcher/index.ts";
const worker = "packages/kernel/worker/index.ts";
const relay = "packages/kernel/outbox/relay.ts";
const inbox = "packages/kernel/inbox";
const sender = "services/notification/workers/notification-sender.ts";
const matchmaking = "services/matchmaking";
const points = "services/points";
const [redisQueue, postgresQueue] = [`${matchmaking}/queue/redis`, `${matchmaking}/queue/postgres`];

/** One statement that is its own transaction. `isOurs` selects it by its name. */
const statementSent = (name: string, isOurs: string) => ({
  file: transaction,
  find: "const result = await client.query<Row>(query);",
  replace: `if (${isOurs}) {
        const sent = await reachWaiting("${name}", client.query<Row>(query));
        if (isUnreplicated(client)) throw notReplicated();
        return sent;
      }
      const result = await client.query<Row>(query);`,
});

const commandPoints: readonly Failpoint[] = [
  point(
    "command.batched",
    "a batch of requests is collected; its statement is not sent",
    before(command, "const results = await changeEntitlements("),
  ),
  point("command.sent", "the statement is sent, its response is not read: it may commit or not", (name) =>
    statementSent(name, 'query.name === "change entitlements"'),
  ),
  point(
    "command.committed",
    "state, event, audit and response are committed; no caller has a response, and no worker is woken",
    before(command, "if (results.some("),
  ),
  point("batch.starting", "a batch is about to run: commands, checks, settlements", (name) => ({
    file: batcher,
    find: "const results = await run(",
    replace: `await reach("${name}"); const results = await run(`,
  })),
  point(
    "batch.done",
    "a batch has run, and none of its callers has its result",
    before(batcher, "for (const [index, entry] of batch.entries()) finish("),
  ),
  point(
    "batch.split",
    "a batch failed, and its requests run one by one",
    before(batcher, "const [result] = await run([entry.request]);"),
  ),
  point(
    "expiry.starting",
    "expired entitlements are about to be ended",
    before("services/entitlement/workers/expiry.ts", "const expired = await expireEntitlements("),
  ),
  point(
    "expiry.committed",
    "the ends are committed with their events; the relay is not woken",
    before("services/entitlement/workers/expiry.ts", "if (expired > 0) onCommitted();"),
  ),
];

const transactionPoints: readonly Failpoint[] = [
  point(
    "transaction.begun",
    "a transaction is open and has run no statement",
    after(transaction, "await tx.query(begin(options));"),
  ),
  point(
    "transaction.committing",
    "all statements of a transaction have run; COMMIT is not sent",
    before(transaction, "await commit(tx);"),
  ),
  point("transaction.commit-sent", "COMMIT is sent, its response is not read", (name) => ({
    file: transaction,
    find: 'await tx.query("commit").catch(',
    replace: `await reachWaiting("${name}", tx.query("commit")).catch(`,
  })),
  point(
    "transaction.committed",
    "the transaction is committed; its caller does not know, and no worker is woken",
    after(transaction, "await commit(tx);"),
  ),
  point(
    "statement.sent",
    "a statement that is its own transaction is sent, its response is not read; not for commands",
    (name) => statementSent(name, 'query.name !== "change entitlements" && query.name !== "bus publish"'),
  ),
];

const relayPoints: readonly Failpoint[] = [
  point(
    "relay.publishing",
    "events are claimed and encoded, none is published",
    before(relay, "const outcomes = await bus.publish(envelopes);"),
  ),
  point(
    "relay.publish-sent",
    "events are sent, the bus has not replied",
    before("packages/bus-nats/publisher.ts", "const outcomes = await batch.completed;"),
    before("packages/bus-rabbitmq/publisher.ts", 'await withTimeout(timeoutMs, "confirm"'),
    (name) => statementSent(name, 'query.name === "bus publish"'),
  ),
  point(
    "relay.published",
    "the bus has stored the events, none is settled",
    after(relay, "const outcomes = await bus.publish(envelopes);"),
  ),
  point(
    "relay.moving",
    "PostgreSQL bus: events are PUBLISHED, uncommitted; their messages are not stored",
    before(relay, "await publish(tx, envelopes);"),
  ),
  point(
    "relay.moved",
    "PostgreSQL bus: events are PUBLISHED and their messages are stored, uncommitted",
    after(relay, "await publish(tx, envelopes);"),
  ),
];

const consumerPoints: readonly Failpoint[] = [
  point(
    "consumer.received",
    "a batch has arrived, nothing has run",
    before(`${inbox}/inbox.ts`, "const batch = batchable(inbox, deliveries);"),
  ),
  point(
    "consumer.marked",
    "the events are marked processed, uncommitted",
    before(`${inbox}/apply.ts`, "const events: Event[] = [];"),
  ),
  point(
    "consumer.effect",
    "marks and effect are written, uncommitted",
    before(`${inbox}/apply.ts`, "return events.length;"),
  ),
  point(
    "consumer.counted",
    "the attempt of an event is counted and committed, but not started",
    before(`${inbox}/handle-one.ts`, "const current = { inbox, delivery, attempt };"),
  ),
  point(
    "consumer.dead-lettered",
    "an event is in the DLQ, and the bus does not know",
    before(`${inbox}/handle-one.ts`, 'count("todoke.inbox.events", { consumer, result: "dead" });'),
  ),
  point(
    "consumer.handled",
    "everything is committed, nothing is acked",
    before(`${inbox}/inbox.ts`, "return deliveries.map((delivery) => outcomes.get(delivery) as Outcome);"),
  ),
  point(
    "consumer.acked",
    "the acks of a batch are passed to the broker's connection; for the PostgreSQL bus see delivery.settled",
    before("packages/bus-nats/subscription.ts", "for (const { puller } of this.#sources) puller.pull();"),
    after("packages/bus-rabbitmq/subscription.ts", "ack(finished);"),
  ),
];

const senderPoints: readonly Failpoint[] = [
  point(
    "sender.sending",
    "a notification is claimed, nothing is sent",
    before(sender, "const outcome = await (span ?"),
  ),
  point(
    "sender.request-sent",
    "the request is sent to the receiver, its response is not read",
    before("services/notification/senders/http-post.ts", "const response = await responding;"),
  ),
  point("sender.responded", "the receiver has responded, nothing is settled", before(sender, "span?.end(outcome.kind")),
];

/** The end of a transaction that makes matches, `find`, is preceded by the point once everything is written. */
const writing = (find: string) => (name: string) => ({
  file: `${postgresQueue}/matching.ts`,
  find,
  replace: `${find.replace("return", "const written = await")}
      if (written.length > 0) await reach("${name}");
      return written;`,
});

/** A change in Redis is not recorded yet; a change in PostgreSQL is recorded by the same commit. */
const matchmakingPoints: readonly Failpoint[] = [
  point(
    "join.applied",
    "a ticket is queued; its player has no response, and no matcher is woken",
    before(`${matchmaking}/commands/join-queue.ts`, 'if (joined.kind === "new" && !joined.replayed) onJoined(mode);'),
  ),
  point(
    "match.writing",
    "PostgreSQL: tickets have left the queue, their match and its event are written, uncommitted",
    writing("return end(tx, [...damaged, ...groups.map((seats) => toMatch({ mode, seats, terms, rows }))]);"),
    writing("return end(tx, [...damaged, ...matches]);"),
  ),
  point(
    "match.made",
    "matches are made: in Redis and not recorded, or in PostgreSQL and committed; no waiter is woken",
    made(`${redisQueue}/redis-queue.ts`, "all += made;", "made"),
    made(`${redisQueue}/redis-queue.ts`, "if (all > 0) onEnded(mode);", "all > 0"),
    made(
      `${postgresQueue}/matching.ts`,
      "// A damaged or ended ticket is gone from the queue now, so the tickets behind it may match.\n    if (ended",
      "made > 0",
    ),
    made(`${postgresQueue}/matching.ts`, "return { made };\n}\n\nconst isMade", "made > 0"),
  ),
  point(
    "cancel.writing",
    "a ticket is cancelled: in Redis and not recorded, or in PostgreSQL and uncommitted",
    before(`${redisQueue}/redis-queue.ts`, "const { result } = await record(mode, raw);"),
    before(`${postgresQueue}/index.ts`, "return (await selectTicketEnd(tx, ticketId))?.status;"),
  ),
  point(
    "cancel.recorded",
    "a cancelled ticket is recorded, and its player has no response",
    before(`${matchmaking}/commands/cancel-ticket.ts`, "return end ? endedTicketView(end) : endIfExpired(deps, own);"),
  ),
  point(
    "sweep.writing",
    "PostgreSQL: expired tickets have left the queue, their ends and events are written, uncommitted",
    (name) => ({
      file: `${postgresQueue}/index.ts`,
      find: "end(tx, (await sql.lockExpired(tx, mode, endsMax)).flatMap(unmatchableEnd)),",
      replace: `end(tx, (await sql.lockExpired(tx, mode, endsMax)).flatMap(unmatchableEnd)).then(async (ended) => {
          if (ended.length > 0) await reach("${name}");
          return ended;
        }),`,
    }),
  ),
  point(
    "sweep.ended",
    "expired tickets have ended: in Redis and not recorded, or in PostgreSQL and committed; no waiter is woken",
    made(`${redisQueue}/redis-queue.ts`, "if (expired + damaged > 0) onEnded(mode);", "expired > 0"),
    made(`${postgresQueue}/index.ts`, "for (const { end: how", "ended.length > 0"),
  ),
  point(
    "recorder.claimed",
    "ends are claimed from Redis, and none is recorded",
    before(`${redisQueue}/end-batches.ts`, "const { requeued } = await recordEntries("),
  ),
  point("recorder.writing", "ends from Redis and their events are written, uncommitted", (name) => ({
    file: `${redisQueue}/record-entries.ts`,
    find: "(tx) => recordEnds(tx, ends, { outbox }));",
    replace: `(tx) => recordEnds(tx, ends, { outbox }).then(async (all) => (await reach("${name}"), all)));`,
  })),
  point(
    "recorder.recorded",
    "ends from Redis are recorded, and not acked in Redis",
    before(`${redisQueue}/record-entries.ts`, "onRecorded?.(recorded);"),
  ),
  point(
    "recorder.acked",
    "ends are recorded and acked in Redis; no waiter is woken",
    before(`${redisQueue}/end-batches.ts`, "if (requeued > 0) onRequeued?.(mode);"),
  ),
];

/** The scheduler and the worker of points; the rest of a reservation's way is that of every command and event. */
const pointsPoints: readonly Failpoint[] = [
  point(
    "scheduler.dispatching",
    "due reservations are PROCESSING and their events are written, uncommitted",
    (name) => ({
      file: `${points}/commands/dispatch-reservations.ts`,
      find: "return { redispatched, ...(await dispatchDue(tx, limits)) };",
      replace: `const due = await dispatchDue(tx, limits);
      if (due.dispatched > 0) await reach("${name}");
      return { redispatched, ...due };`,
    }),
  ),
  point(
    "scheduler.dispatched",
    "due reservations are PROCESSING, committed; the relay is not woken",
    made(`${points}/workers/scheduler.ts`, "if (summary.sent > 0) onSent();", "summary.sent > 0"),
  ),
  point(
    "occurrence.writing",
    "a recurring grant has created the reservations of a batch of users; its cursor is not written; uncommitted",
    made(
      `${points}/commands/run-due-schedule.ts`,
      "await updateProgress(tx, { scheduleId, ...progress });",
      "users > 0",
    ),
  ),
  point(
    "occurrence.written",
    "a batch of users of a recurring grant is committed, the next is not started",
    made(`${points}/workers/scheduler.ts`, "if (isDrained || stopping?.aborted)", "hasRun"),
  ),
  point(
    "grant.posted",
    "points of reservations are posted, and the reservations are not DONE, uncommitted; in the worker or in a scheduler that grants",
    before(`${points}/commands/grant-reservations.ts`, "const granted = due.map("),
  ),
  point(
    "scheduler.granting",
    "a scheduler that grants has locked due reservations, and has posted nothing",
    (name) => ({
      file: `${points}/commands/grant-reservations.ts`,
      find: "grantLocked(tx, await lockDueReservations(tx, limit)));",
      replace: `lockDueReservations(tx, limit).then(async (due) => {
    if (due.length > 0) await reach("${name}");
    return grantLocked(tx, due);
  }));`,
    }),
  ),
  point(
    "scheduler.granted",
    "a scheduler has granted reservations, committed; the relay is not woken",
    made(`${points}/workers/scheduler.ts`, "if (delaysMs.length === 0) return 0;", "delaysMs.length > 0"),
  ),
  point("grant.failing", "a reservation is FAILED and its event is a dead letter, uncommitted", (name) => ({
    file: `${points}/events/on-point-reservation-due.ts`,
    find: "if (await markFailed(tx, eventId, reason)) afterCommit(tx, wake);",
    replace: `if (await markFailed(tx, eventId, reason)) { await reach("${name}"); afterCommit(tx, wake); }`,
  })),
];

const orders = "services/orders";

const orderPoints: readonly Failpoint[] = [
  point(
    "order.accepted",
    "orders are committed with ledger, history and event; no caller has a response, and no sender is woken",
    before(`${orders}/commands/accept-order.ts`, "const accepted = results.filter("),
  ),
  point(
    "order.claimed",
    "an order is claimed, nothing has run",
    before(`${orders}/workers/send-orders.ts`, "const priorSend = order.maybeSent ?"),
  ),
  point(
    "order.dispatched",
    "the dispatch is recorded, and no byte is sent",
    before(`${orders}/workers/send-orders.ts`, "telemetry.dispatched(order.ageMs);"),
  ),
  point(
    "order.request-sent",
    "a request is sent to the broker, its reply is not read",
    before(`${orders}/brokers/http/exchange.ts`, "return await reply;"),
  ),
  point(
    "order.replied",
    "the broker has replied, nothing is recorded",
    before(`${orders}/workers/send-orders.ts`, 'if (outcome.kind === "taken") return transition('),
  ),
  point(
    "order.checked",
    "the broker has replied about an unresolved order, nothing is recorded",
    before(`${orders}/workers/check-unresolved.ts`, "switch (found.kind) {"),
  ),
  point(
    "order.transitioning",
    "the transition of an order is about to be written",
    before(`${orders}/workers/transitions.ts`, "const applied = await retry("),
  ),
  point(
    "order.transitioned",
    "the transition of an order is committed, and no caller knows",
    before(`${orders}/workers/transitions.ts`, "if (applied) telemetry.transitioned("),
  ),
];

const maintenancePoints: readonly Failpoint[] = [
  point(
    "retention.removing",
    "old rows are about to be deleted",
    before("packages/kernel/retention/index.ts", "const { rowCount } = await runStatement("),
  ),
  point(
    "retention.removed",
    "a batch of old rows is deleted",
    before("packages/kernel/retention/index.ts", "return rowCount ?? 0;"),
  ),
  point(
    "redrive.redriven",
    "dead rows are ready again, and the record of the redrive is written, uncommitted",
    before("packages/kernel/dead-letters/index.ts", "if (redriven.length > 0) await onRedriven?."),
  ),
  point(
    "redrive.effect",
    "a redriven event has taken effect, uncommitted",
    after(`${inbox}/inbox.ts`, "if (await store.markEffective(tx, consumer, job.eventId)) await effect(tx, [event]);"),
  ),
  point(
    "stop.begun",
    "the process got the signal to stop and has started to drain",
    before("packages/service/service.ts", "await started.disposeAsync();"),
  ),
  point(
    "stop.drained",
    "everything is released and closed, the process still runs",
    after("packages/service/service.ts", "await started.disposeAsync();"),
  ),
];

/** The steps of every worker, by the rows that it claims. One patch wraps the statements of all workers (reach.ts). */
const workers = {
  relay: "events for the bus",
  sender: "notifications",
  delivery: "deliveries of the PostgreSQL bus",
  redriver: "redriven dead letters",
};
const steps = {
  claimed: "are claimed, nothing has run",
  settling: "have outcomes, nothing is settled",
  "settle-sent": "are being settled, the response is not read",
  settled: "are settled, and the worker does not know",
  renewing: "are claimed, and their leases are about to be renewed",
};

const wrapped: Patch = {
  file: worker,
  find: "const { name, db, claims, wakeups, topic } = options;",
  replace: `const { name, db, wakeups, topic } = options;
  const claims = withFailpoints(options.claims);`,
};

const workerPoints = Object.entries(workers).flatMap(([role, rows]) =>
  Object.entries(steps).map(([step, are]) => point(`${role}.${step}`, `${rows} ${are}`, () => wrapped)),
);

/** Reached only in the code of planted defects: in the gap that a defect opens between two steps. */
const plantedPoint: Failpoint = {
  name: "planted.gap",
  where: "chaos/patches/planted",
  meaning: "between two steps that the defect has separated",
  patches: [],
};

export const failpoints: readonly Failpoint[] = [
  ...commandPoints,
  ...transactionPoints,
  ...relayPoints,
  ...consumerPoints,
  ...senderPoints,
  ...matchmakingPoints,
  ...pointsPoints,
  ...orderPoints,
  ...maintenancePoints,
  ...workerPoints,
  plantedPoint,
];
