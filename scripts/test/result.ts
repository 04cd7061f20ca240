/** The result of a step of `npm test`, and the results of all steps as one line. */

export interface Result {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** For the end of the run: the part that was not run, and the remedy. */
  readonly notes: readonly string[];
}

export const passed: Result = { passed: 1, failed: 0, skipped: 0, notes: [] };
export const failed: Result = { passed: 0, failed: 1, skipped: 0, notes: [] };
export const skipped = (note: string): Result => ({ passed: 0, failed: 0, skipped: 1, notes: [note] });

export function sum(results: readonly Result[]) {
  const total = (of: "passed" | "failed" | "skipped") => results.reduce((count, result) => count + result[of], 0);
  return {
    passed: total("passed"),
    failed: total("failed"),
    skipped: total("skipped"),
    notes: results.flatMap((result) => result.notes),
  };
}

/** Under CI a skip is a failure: a message that something was not run would not be read. */
export function lastLine(total: Omit<Result, "notes">, options: { readonly ci: boolean }): string {
  if (options.ci) return `${total.passed} passed, ${total.failed + total.skipped} failed`;
  const counts = `${total.passed} passed, ${total.failed} failed`;
  return total.skipped > 0 ? `${counts}, ${total.skipped} skipped` : counts;
}
