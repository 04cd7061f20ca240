/** What a check finds. Every fault says what to do about it; so does every warning, here or in its own words. */

export interface Finding {
  readonly level: "ok" | "warning" | "fault";
  /** What was looked at: "database". */
  readonly of: string;
  readonly says: string;
  readonly todo?: string;
}

/** Finds out about one thing. A rejection becomes a fault; so does taking too long. */
export type Check = (signal: AbortSignal) => Promise<readonly Finding[]>;

export interface Findings {
  ok(says: string): Finding;
  warning(says: string, todo?: string): Finding;
  fault(says: string, todo: string): Finding;
}

/** The three things that can be said of `of`. */
export function about(of: string): Findings {
  return {
    ok: (says) => ({ level: "ok", of, says }),
    warning: (says, todo) => ({ level: "warning", of, says, ...(todo && { todo }) }),
    fault: (says, todo) => ({ level: "fault", of, says, todo }),
  };
}
