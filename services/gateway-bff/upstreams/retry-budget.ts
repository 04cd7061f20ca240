/**
 * Tries that come on top of calls are a tenth of the calls at the most, ten in a burst: a service that is in trouble is not
 * buried under the goodwill of its callers.
 */
export interface RetryBudget {
  /** A call was made. */
  earn(): void;
  /** Whether one more try may be made; if so, it is paid. */
  spend(): boolean;
}

const burstMax = 10;
// Whole tenths: fractions would not add up.
const costOfTry = 10;

export function retryBudget(): RetryBudget {
  let tenths = burstMax * costOfTry;
  return {
    earn() {
      tenths = Math.min(tenths + 1, burstMax * costOfTry);
    },
    spend() {
      if (tenths < costOfTry) return false;
      tenths -= costOfTry;
      return true;
    },
  };
}
