/** A time in a request that PostgreSQL can store. */
import { Type } from "typebox";

export const RequestTime = (options: { readonly description?: string; readonly examples?: string[] } = {}) =>
  Type.String({
    format: "date-time",
    // The format also allows leap seconds, and years that PostgreSQL cannot store.
    pattern: "^2\\d{3}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$",
    examples: ["2026-01-31T09:30:00Z"],
    ...options,
  });
