/** The conformance suite of the queue port. An adapter's own tests cover only what is particular to it. */
import { cancelForUsersConforms } from "./conformance/cancel-for-users.ts";
import { cancellingConforms } from "./conformance/cancelling.ts";
import { concurrencyConforms } from "./conformance/concurrency.ts";
import { damageConforms } from "./conformance/damage.ts";
import { expiryConforms } from "./conformance/expiry.ts";
import { findingConforms } from "./conformance/finding.ts";
import { joiningConforms } from "./conformance/joining.ts";
import { matchingConforms } from "./conformance/matching.ts";
import { proposalsConform } from "./conformance/proposals.ts";
import type { Harness } from "./testing.ts";

export interface QueueUnderTest {
  readonly name: string;
  createHarness(): Promise<Harness>;
}

export function queueConformance(queue: QueueUnderTest): void {
  joiningConforms(queue);
  findingConforms(queue);
  matchingConforms(queue);
  proposalsConform(queue);
  cancellingConforms(queue);
  cancelForUsersConforms(queue);
  expiryConforms(queue);
  damageConforms(queue);
  concurrencyConforms(queue);
}
