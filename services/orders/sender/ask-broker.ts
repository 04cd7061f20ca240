/**
 * Asks the broker about orders in doubt until it is known what became of them: soon at first, then every minute, for as
 * long as it takes. An order is never given up for want of an answer; a person can say what became of it meanwhile.
 */
import type { Claims } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import { type Settled, type Worker, type WorkerOptions, worker } from "@todoke/kernel/worker";
import type { Broker } from "../brokers/index.ts";
import { endInDoubt, endOfRejected, endOfTaken, endsOf } from "./ends.ts";
import type { SenderSettings } from "./send-orders.ts";
import { giveToSenders, type HeldOrder, type OrderRow, ordersInDoubt } from "./store.ts";
import type { Tell } from "./tell.ts";

export interface AskOptions extends Pick<WorkerOptions<OrderRow>, "wakeups" | "topic"> {
  readonly db: Db;
  readonly broker: Broker;
  readonly settings: SenderSettings;
  /** Which orders; those that are due, if not given. */
  readonly claims?: Claims<OrderRow>;
  readonly tell: Tell;
  readonly onError: (error: unknown) => void;
}

export function askBroker({
  db,
  broker,
  settings,
  claims = ordersInDoubt,
  tell,
  onError,
  ...waking
}: AskOptions): Worker {
  const { concurrency, leaseMs, pollMs, timeoutMs, backoff } = settings;
  const { waitsMs } = backoff;
  const end = endsOf("unknown", { db, tell, leaseMs, onError });

  async function ask(order: HeldOrder, signal: AbortSignal): Promise<Settled> {
    const { clientOrderId, claim } = order;
    const lastSentAt = order.lastSentAt ?? broker.clock();
    const startedAt = performance.now();
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const found = await broker.find(clientOrderId, { lastSentAt, signal: within });
    tell.called("find", found.kind, startedAt);
    switch (found.kind) {
      case "taken":
        return end(order, endOfTaken(found));
      case "rejected":
        return end(order, endOfRejected(found));
      case "never":
        return end(order, hasAttemptsLeft(order) ? { to: "pending" } : givenUp(order));
      case "not-yet":
        if (maySendAgain(order, lastSentAt)) return { kind: "settled", won: await giveToSenders(db, claim), inMs: 1 };
        return end(order, endInDoubt(order, { code: codeOf(order), why: "the broker has not got it yet" }));
      case "unknown":
        return end(order, endInDoubt(order, { code: codeOf(order), why: found.why }));
    }
  }

  const hasAttemptsLeft = ({ claim }: HeldOrder) => claim.attempt < waitsMs.length;

  /** A broker that takes an order once may be sent it again, after the wait that any failure has. */
  function maySendAgain(order: HeldOrder, lastSentAt: Date): boolean {
    const waitMs = waitsMs[order.claim.attempt - 1] ?? 0;
    return broker.dedupes && hasAttemptsLeft(order) && broker.clock().getTime() - lastSentAt.getTime() >= waitMs;
  }

  return worker<OrderRow>({
    name: "order asker",
    db,
    claims,
    queue: broker.name,
    run: (orders, leases) => orders.map((order) => ask(order, leases.of(order).signal)),
    settings: { concurrency, batchMax: concurrency, leaseMs, pollMs, attemptsMax: Number.MAX_SAFE_INTEGER },
    onError,
    ...waking,
  });
}

const codeOf = ({ lastErrorCode }: HeldOrder) => lastErrorCode ?? "BROKER_TIMEOUT";

const givenUp = (order: HeldOrder) =>
  ({
    to: "aborted",
    code: codeOf(order),
    why: `given up after ${order.claim.attempt} attempts; the broker has not taken it`,
  }) as const;
