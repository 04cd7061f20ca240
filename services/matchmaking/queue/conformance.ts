/**
 * What every queue promises, asked of each adapter in the same words, on real engines. An adapter's own tests are only
 * about what is particular to it.
 */
import { barringConforms } from "./conformance/barring.ts";
import { cancellingConforms } from "./conformance/cancelling.ts";
import { damageConforms } from "./conformance/damage.ts";
import { expiryConforms } from "./conformance/expiry.ts";
import { joiningConforms } from "./conformance/joining.ts";
import { matchingConforms } from "./conformance/matching.ts";
import { settlingConforms } from "./conformance/settling.ts";
import { togetherConforms } from "./conformance/together.ts";
import type { Harness } from "./testing.ts";

export interface QueueUnderTest {
  readonly name: string;
  createHarness(): Promise<Harness>;
}

export function queueConformance(queue: QueueUnderTest): void {
  joiningConforms(queue);
  matchingConforms(queue);
  settlingConforms(queue);
  cancellingConforms(queue);
  barringConforms(queue);
  expiryConforms(queue);
  damageConforms(queue);
  togetherConforms(queue);
}
