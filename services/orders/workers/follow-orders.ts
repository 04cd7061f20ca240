/**
 * Follows orders that are open at the broker: asks for their fills until each order has ended there, soon after a fill and then ever
 * less often. The statement that records fills is fenced by the claim, and a fill counts once by its trade ID, so that a worker may
 * die between any two steps: the next one asks from the last recorded position on.
 */
import { createWorker, type JobOutcome, retry, type Worker } from "@todoke/kernel/worker";
import { type ClaimedFollowedOrder, type FollowedOrder, followedOrders, recordFills } from "../store/order-fills.ts";
import { brokerCalls, type SenderOptions, workerOptions } from "./sender-options.ts";

// An order that rests for days costs two requests a minute. A cancel has its order checked at once.
const checkDelaysMs = [500, 1_000, 2_000, 5_000, 10_000, 30_000];

const delayAfter = (checks: number) => checkDelaysMs[Math.min(checks, checkDelaysMs.length - 1)] as number;

export function followOrders(options: SenderOptions): Worker {
  const { db, telemetry } = options;
  const calls = brokerCalls(options);

  async function follow(order: ClaimedFollowedOrder, signal: AbortSignal): Promise<JobOutcome> {
    const { clientOrderId, position, checks } = order;
    const found = await calls.fills(clientOrderId, { after: position, signal });
    if (found.kind !== "fills") return retry(delayAfter(checks + 1), found.reason);
    const delays = { delayMs: delayAfter(checks), delayAfterFillMs: delayAfter(0) };
    const { applied, fills, ended } = await recordFills(db, order, { ...found, ...delays });
    if (applied && fills > 0) telemetry.filled(fills);
    const delayMs = fills > 0 ? delays.delayAfterFillMs : delays.delayMs;
    return { kind: "settled", applied, ...(applied && !ended && { delayMs }) };
  }

  return createWorker<FollowedOrder>({
    ...workerOptions(options, followedOrders),
    name: "order follower",
    run: (orders, leases) => orders.map((order) => follow(order, leases.of(order).signal)),
  });
}
