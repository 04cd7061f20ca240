/** How a redrive is requested and shown, the same on every route that has one. */
import type { RedriveRequest } from "@todoke/kernel/claims";
import { type Static, Type } from "typebox";

/** The bounds are those of the table `redrives`. */
export const RedriveBody = Type.Object(
  {
    redriven_by: Type.String({ minLength: 1, maxLength: 128, description: "Who requests the redrive; recorded." }),
    reason: Type.String({ minLength: 1, maxLength: 500, description: "Why it can succeed now; recorded." }),
  },
  { title: "RedriveRequest" },
);

const RedriveView = Type.Object(
  {
    redriven_at: Type.String({ format: "date-time" }),
    redriven_by: Type.String(),
    reason: Type.String(),
    attempt_count: Type.Integer({ description: "Attempts before this redrive, which resets the count." }),
    last_error: Type.Union([Type.String(), Type.Null()]),
  },
  { title: "Redrive" },
);

export const RedrivesView = Type.Array(RedriveView, { description: "The last 20 redrives, newest first." });

export const RedrivenView = Type.Object(
  {
    redriven: Type.Boolean({ description: "False if it was redriven before; then nothing has changed." }),
  },
  { title: "Redriven" },
);

export const redriveRequest = ({ redriven_by, reason }: Static<typeof RedriveBody>): RedriveRequest => ({
  by: redriven_by,
  reason,
});
