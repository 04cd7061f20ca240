/** How a redrive is asked for and shown, the same on every route that has one. */
import type { RedriveRequest } from "@todoke/kernel/claims";
import { type Static, Type } from "typebox";

/** The bounds are those of the table `redrives`. */
export const RedriveBody = Type.Object({
  redriven_by: Type.String({ minLength: 1, maxLength: 128, description: "Who asks for it; kept." }),
  reason: Type.String({ minLength: 1, maxLength: 500, description: "Why it can succeed now; kept." }),
});

export const RedriveView = Type.Object({
  redriven_at: Type.String({ format: "date-time" }),
  redriven_by: Type.String(),
  reason: Type.String(),
  attempt_count: Type.Integer({ description: "What it had come to by then; with a redrive it begins anew." }),
  last_error: Type.Union([Type.String(), Type.Null()]),
});

export const redriveRequest = ({ redriven_by, reason }: Static<typeof RedriveBody>): RedriveRequest => ({
  by: redriven_by,
  reason,
});
