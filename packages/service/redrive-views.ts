/** How a redrive is requested and shown, the same on every route that has one. */
import { named, orNull } from "@todoke/contracts/api";
import type { RedriveRequest } from "@todoke/kernel/claims";
import { type Static, Type } from "typebox";

/** The bounds are those of the table `redrives`. */
export const RedriveBody = named("RedriveRequest", {
  redriven_by: Type.String({ minLength: 1, maxLength: 128, description: "Who requests the redrive; recorded." }),
  reason: Type.String({ minLength: 1, maxLength: 500, description: "Why it can succeed now; recorded." }),
});

const RedriveView = named("Redrive", {
  redriven_at: Type.String({ format: "date-time" }),
  redriven_by: Type.String(),
  reason: Type.String(),
  attempt_count: Type.Integer({ description: "Attempts before this redrive, which resets the count." }),
  last_error: orNull(Type.String()),
});

export const RedrivesView = Type.Array(RedriveView, { description: "The last 20 redrives, newest first." });

export const RedrivenView = named("Redriven", {
  redriven: Type.Boolean({ description: "False if it was redriven before; then nothing has changed." }),
});

export const redriveRequest = ({ redriven_by, reason }: Static<typeof RedriveBody>): RedriveRequest => ({
  by: redriven_by,
  reason,
});
