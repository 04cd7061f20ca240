/**
 * Events that account has to be asked about wait while it cannot be, and it does not count against them: an inbox gives an
 * event up after some tries, and how often that is has nothing to do with how long account is down. What comes behind such
 * an event of the same user waits with it; all others go on.
 */
import type { Delivery, Handle } from "@todoke/kernel/bus";
import { type Outcome, release } from "@todoke/kernel/worker";

export interface WaitOptions {
  /** Whether account can be asked about this one now; true of what needs no asking. */
  readonly answers: (delivery: Delivery) => boolean | Promise<boolean>;
  readonly againMs?: number;
}

export function whileAccountAnswers(handle: Handle, { answers, againMs = 1_000 }: WaitOptions): Handle {
  return async (deliveries, stopping) => {
    const outcomes = new Map<Delivery, Outcome>();
    const waiting = new Set<string>();
    for (const delivery of deliveries) {
      if (!waiting.has(delivery.aggregateKey) && (await answers(delivery))) continue;
      waiting.add(delivery.aggregateKey);
      outcomes.set(delivery, release("account cannot be asked how the user is now", againMs));
    }
    const passed = deliveries.filter((delivery) => !outcomes.has(delivery));
    const settled = passed.length > 0 ? await handle(passed, stopping) : [];
    for (const [place, delivery] of passed.entries()) outcomes.set(delivery, settled[place] as Outcome);
    return deliveries.map((delivery) => outcomes.get(delivery) as Outcome);
  };
}
