/**
 * Asks the broker to cancel what may have been sent to it. A lane of its own: a cancel does not queue behind orders, and
 * cancel-only lets it through. An order that turns out not to be with the broker is ended here, before anybody sends it.
 */
import type { Db } from "@todoke/kernel/db";
import { type JobOutcome, release, retry, type Worker, type WorkerOptions, worker } from "@todoke/kernel/worker";
import type { Broker } from "../brokers/index.ts";
import { moveOrder } from "../store/move-order.ts";
import type { SenderSettings } from "./send-orders.ts";
import { haltedMs } from "./store.ts";
import { type CancelEnd, type CancelRow, cancelRequests, endCancel, type HeldCancel } from "./store-cancels.ts";
import type { Tell } from "./tell.ts";

export interface CancelOptions extends Pick<WorkerOptions<CancelRow>, "wakeups" | "topic"> {
  readonly db: Db;
  readonly broker: Broker;
  readonly settings: SenderSettings;
  readonly tell: Tell;
  readonly onError: (error: unknown) => void;
}

// Sooner than a person would ask again, and not so soon that a broker minds.
const againMs = 1_000;

export function cancelOrders({ db, broker, settings, tell, onError, ...waking }: CancelOptions): Worker {
  const { concurrency, leaseMs, pollMs, timeoutMs } = settings;

  async function cancel(request: HeldCancel, signal: AbortSignal): Promise<JobOutcome> {
    const { orderStatus } = request;
    if (request.isHalted) return release("trading is halted", haltedMs);
    if (orderStatus === "aborted") return ended(request, { status: "aborted", why: "it never reached the broker" });
    if (orderStatus === "pending" || orderStatus === "failed") return abort(request);
    const startedAt = performance.now();
    const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const { kind, why } = await broker.cancel(request.clientOrderId, within);
    tell.called("cancel", kind, startedAt);
    if (kind === "cancelled") return ended(request, { status: "done", why });
    // What is filled cannot be cancelled; but what is still under way may be neither filled nor there.
    if (kind === "too-late") return ended(request, { status: "refused", why });
    if (kind === "not-found" && orderStatus === "succeeded") return ended(request, { status: "refused", why });
    return retry(againMs, why);
  }

  async function abort(request: HeldCancel): Promise<JobOutcome> {
    const { orderRowId: id, requestedBy: by } = request;
    const end = { to: "aborted", code: "CANCELLED", why: "cancelled before it was sent" } as const;
    const won = await moveOrder(db, { ...end, id, epoch: null, from: ["pending", "failed"], by });
    if (!won) return retry(againMs, "the order went on in the meantime");
    tell.ended(request, end);
    return ended(request, { status: "aborted", why: end.why });
  }

  async function ended(request: HeldCancel, end: CancelEnd): Promise<JobOutcome> {
    return { kind: "settled", won: await endCancel(db, request, end) };
  }

  return worker<CancelRow>({
    name: "order canceller",
    db,
    claims: cancelRequests,
    queue: broker.name,
    run: (requests, leases) => requests.map((request) => cancel(request, leases.of(request).signal)),
    settings: { concurrency, batchMax: concurrency, leaseMs, pollMs, attemptsMax: Number.MAX_SAFE_INTEGER },
    onError,
    ...waking,
  });
}
