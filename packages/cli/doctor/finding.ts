/** A result of a check. Every fault, and most warnings, say what to do. The fields are printed as JSON. */
import { ServerUnreachable } from "@todoke/kernel/server-url";

export interface Finding {
  readonly level: "ok" | "warning" | "fault";
  /** What was checked: "database". */
  readonly of: string;
  readonly says: string;
  readonly todo?: string;
}

/** One check. A rejection or a timeout becomes a fault. */
export type Check = (signal: AbortSignal) => Promise<readonly Finding[]>;

export interface Findings {
  ok(says: string): Finding;
  warning(says: string, todo?: string): Finding;
  fault(says: string, todo: string): Finding;
}

export function findingsFor(of: string): Findings {
  return {
    ok: (says) => ({ level: "ok", of, says }),
    warning: (says, todo) => ({ level: "warning", of, says, ...(todo && { todo }) }),
    fault: (says, todo) => ({ level: "fault", of, says, todo }),
  };
}

/** The settings to look at if the error, or a cause of it, says what is wrong with a connection. */
export function unreachableRemedy(error: unknown, variable: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (!(error instanceof ServerUnreachable)) return unreachableRemedy(error.cause, variable);
  const [ca, cert, key] = ["CA_FILE", "CERT_FILE", "KEY_FILE"].map((name) => variable.replace(/URL$/, name));
  return `Correct the server, ${variable}, ${ca}, or ${cert} and ${key}.`;
}
