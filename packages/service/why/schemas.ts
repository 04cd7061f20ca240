/** The explanation of an id in the API: of one service, and of all. */
import { named, oneOf } from "@todoke/contracts/api";
import { linkKinds } from "@todoke/kernel/why";
import { Type } from "typebox";
import { outcomes } from "./explanation.ts";

const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const LinkView = named("WhyLink", {
  kind: oneOf(linkKinds),
  id: Type.String({ description: "An id that can be looked up in turn." }),
});

const DeadLetterName = named("WhyDeadLetterName", { table: Type.String(), id: Type.String() });
const DeadLetterTarget = named("WhyDeadLetter", {
  service: Type.String({ description: "The service that has the dead letter." }),
  table: Type.String(),
  id: Type.String(),
});

const blockerFields = {
  kind: Type.String({ examples: ["event"] }),
  id: Type.String(),
  state: Type.String({ examples: ["FAILED"] }),
  since: nullable("When it entered this state, if the row has the time."),
  error: nullable("Its last error."),
};

const entryFields = {
  kind: Type.String({ description: "The kind of entry.", examples: ["notification"] }),
  id: Type.String({ description: "The id of the row, in its own table." }),
  at: nullable("When it happened. Without a time, it is the case now."),
  state: nullable("As in the table; of a request, the status of its response."),
  attempt: Type.Union([Type.Integer(), Type.Null()], { description: "Attempts so far." }),
  process: nullable("The worker that has the row, or who did it."),
  trace_id: nullable("The trace that it belongs to."),
  detail: nullable("A short text. Parts of it come from callers."),
  error: nullable("The error of the last attempt."),
  next_retry_at: nullable("When it is retried; null if it is not."),
  links: Type.Array(LinkView, { description: "Ids that the entry names." }),
};

export const WhyPartView = named("WhyPart", {
  entries: Type.Array(
    named("WhyPartEntry", {
      ...entryFields,
      blocked_by: Type.Union([
        named("WhyPartBlocker", { ...blockerFields, dead_letter: Type.Union([DeadLetterName, Type.Null()]) }),
        Type.Null(),
      ]),
      dead_letter: Type.Union([DeadLetterName, Type.Null()]),
    }),
  ),
  failed: Type.Array(Type.String(), { description: "The look-ups that failed, each with its reason." }),
});

export const WhyView = named("Why", {
  id: Type.String(),
  outcome: oneOf(outcomes, { description: "`dead` needs an operator; `retrying` is retried automatically." }),
  sentence: Type.String({ description: "What happened, or what blocks it." }),
  cure: Type.Union([
    named("WhyCure", {
      text: Type.String(),
      command: nullable("A command line that does it."),
      dead_letter: Type.Union([DeadLetterTarget, Type.Null()]),
    }),
    Type.Null(),
  ]),
  found: Type.Array(named("WhyFound", { kind: oneOf(linkKinds), id: Type.String(), service: Type.String() }), {
    description: "What the ID identifies.",
  }),
  entries: Type.Array(
    named("WhyEntry", {
      service: Type.String({ description: "The service that knows it." }),
      ...entryFields,
      blocked_by: Type.Union([
        named("WhyBlocker", {
          service: Type.String(),
          ...blockerFields,
          dead_letter: Type.Union([DeadLetterTarget, Type.Null()]),
        }),
        Type.Null(),
      ]),
      dead_letter: Type.Union([DeadLetterTarget, Type.Null()], { description: "Set while it is dead." }),
    }),
    { description: "Oldest first; those without a time are last." },
  ),
  truncated: Type.Boolean({ description: "True if there are more entries than these." }),
  links: Type.Array(LinkView, { description: "Related ids that were not followed." }),
  parts: Type.Array(
    named("WhySource", {
      service: Type.String(),
      status: oneOf(["ok", "failed", "absent"], { description: "`absent`: it is not deployed here." }),
      reason: nullable("Why it failed."),
    }),
  ),
});

/** The longest id is an e-mail address, of at most 320 characters. */
export const WhyParams = Type.Object({
  id: Type.String({
    minLength: 1,
    maxLength: 320,
    description:
      "A user, e-mail address, event, notification, trace, idempotency key, order, reservation, point transaction, hold, " +
      "ticket, match, session or number of a dead event.",
    examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
  }),
});
