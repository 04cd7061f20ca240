/**
 * Rate limits, counted together for all processes of the gateway.
 *
 * Guarantees of every store that implements this port (one suite tests them all):
 *  - in any span as long as a policy's window, one key is granted at most its quota, with any number of processes and any
 *    rhythm of requests;
 *  - a request is granted by all of its keys or by none, and a refusal uses up nothing;
 *  - only the store's clock counts, and an unused key takes no room after its time.
 */
import type { LimitDecision, LimitItem } from "@todoke/http";

export interface Limiter {
  take(items: readonly LimitItem[]): Promise<LimitDecision>;
}
