/**
 * Passes cancel requests on to the broker. A worker of its own: cancels do not queue behind orders, and `cancel-only` allows them.
 * An order that turns out not to be with the broker is aborted here, before it is sent.
 */
import { createWorker, type JobOutcome, release, retry, type Worker } from "@todoke/kernel/worker";
import {
  type CancelResult,
  type CancelRow,
  type ClaimedCancel,
  cancelRequests,
  settleCancel,
} from "../store/cancel-requests.ts";
import { haltedRetryMs } from "../store/claimed-orders.ts";
import { checkFillsNow } from "../store/order-fills.ts";
import { transitionOrder } from "../store/transition-order.ts";
import { brokerCalls, type SenderOptions, type WakeOptions, workerOptions } from "./sender-options.ts";

// Sooner than a person would ask again, and not so soon that it burdens the broker.
const retryMs = 1_000;

export function cancelOrders({ wakeups, topic, ...options }: SenderOptions & WakeOptions): Worker {
  const { db, telemetry } = options;
  const calls = brokerCalls(options);

  async function cancel(request: ClaimedCancel, signal: AbortSignal): Promise<JobOutcome> {
    const { orderStatus } = request;
    if (request.isHalted) return release("trading is halted", haltedRetryMs);
    if (orderStatus === "aborted") return settle(request, { status: "aborted", reason: "it never reached the broker" });
    if (orderStatus === "pending" || orderStatus === "failed") return abort(request);
    const { kind, reason } = await calls.cancel(request.clientOrderId, signal);
    if (kind === "cancelled") return settleEnded(request, { status: "done", reason });
    if (kind === "too-late") return settleEnded(request, { status: "refused", reason });
    // If an order has not succeeded, the request to place it may still arrive.
    if (kind === "not-found" && orderStatus === "succeeded") return settle(request, { status: "refused", reason });
    return retry(retryMs, reason);
  }

  async function abort(request: ClaimedCancel): Promise<JobOutcome> {
    const { orderRowId: id, requestedBy: by } = request;
    const target = { to: "aborted", code: "CANCELLED", reason: "cancelled before it was sent" } as const;
    const applied = await transitionOrder(db, { ...target, id, epoch: null, from: ["pending", "failed"], by });
    if (!applied) return retry(retryMs, "the order has changed since");
    telemetry.transitioned(request, target);
    return settle(request, { status: "aborted", reason: target.reason });
  }

  /** The order has ended at the broker: its fills are recorded soon. */
  async function settleEnded(request: ClaimedCancel, result: CancelResult): Promise<JobOutcome> {
    await checkFillsNow(db, request.orderRowId);
    return settle(request, result);
  }

  async function settle(request: ClaimedCancel, result: CancelResult): Promise<JobOutcome> {
    return { kind: "settled", applied: await settleCancel(db, request, result) };
  }

  return createWorker<CancelRow>({
    ...workerOptions(options, cancelRequests),
    name: "order canceller",
    run: (requests, leases) => requests.map((request) => cancel(request, leases.of(request).signal)),
    ...(wakeups && topic !== undefined && { wakeups, topic }),
  });
}
