/** Limits retries to a tenth of all calls, with a burst of ten, so that retries do not overload a failing service. */
export interface RetryBudget {
  /** A call was made. */
  earn(): void;
  /** Returns false if the budget has no retry left. */
  spend(): boolean;
}

const burstMax = 10;
// Whole tenths: fractions would not add up.
const retryCost = 10;

export function retryBudget(): RetryBudget {
  let tenths = burstMax * retryCost;
  return {
    earn() {
      tenths = Math.min(tenths + 1, burstMax * retryCost);
    },
    spend() {
      if (tenths < retryCost) return false;
      tenths -= retryCost;
      return true;
    },
  };
}
