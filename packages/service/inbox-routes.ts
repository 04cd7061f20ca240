/** The dead events of a consumer, for operators: list, get, redrive. The same for every service that consumes. */
import { named, oneOf } from "@todoke/contracts/api";
import { type HttpApp, NextCursor, PageQuery, page, parseCursor } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetter } from "@todoke/kernel/dead-letters";
import { inboxDeadLetters } from "@todoke/kernel/inbox";
import { Type } from "typebox";
import { deadLetterNotFound } from "./problems.ts";
import { redriveDeadLetter } from "./redrive-dead-letter.ts";
import { RedriveBody, RedrivenView, RedrivesView, redriveRequest } from "./redrive-views.ts";

export interface InboxRoutesOptions {
  readonly db: Db;
  readonly consumer: string;
  /** Wakes the redriver. */
  readonly onRedriven: () => void;
}

const DlqId = Type.String({ pattern: "^[1-9][0-9]{0,17}$", description: "The dead letter.", examples: ["17"] });
const DlqParams = Type.Object({ dlq_id: DlqId });

const DeadEventView = named("DeadEvent", {
  dlq_id: DlqId,
  event_id: Type.String(),
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  subject: Type.String({ description: "Where it was published." }),
  aggregate_key: Type.String({ description: "The entity whose events keep their order." }),
  last_error: Type.Union([Type.String(), Type.Null()], { description: "The error of the last attempt." }),
  dead_at: Type.String({ format: "date-time", description: "When it was dead-lettered." }),
});

const DeadEventDetail = named("DeadEventDetail", {
  ...DeadEventView.properties,
  // As received: an unreadable event may have no valid time.
  occurred_at: Type.String(),
  headers: Type.Record(Type.String(), Type.String(), { description: "The metadata of the event." }),
  payload_base64: Type.String({ description: "The event as received, in base64." }),
  status: oneOf(["DEAD", "PENDING", "PROCESSING", "RESOLVED"]),
  attempt_count: Type.Integer({ minimum: 0, description: "Attempts since the last redrive." }),
  redrives: RedrivesView,
});

const path = "/debug/inbox/dlq";
const defaultLimit = 50;

const ListQuery = Type.Object({
  ...PageQuery,
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: `Rows per page at most; the default is ${defaultLimit}.` }),
  ),
});
const DeadEventPage = named("DeadEventPage", { events: Type.Array(DeadEventView), next_cursor: NextCursor });

export function inboxRoutes(app: HttpApp, options: InboxRoutesOptions): void {
  listRoute(app, options);
  getRoute(app, options);
  redriveRoute(app, options);
}

function listRoute(app: HttpApp, { db, consumer }: InboxRoutesOptions): void {
  const deadLetters = inboxDeadLetters(consumer);
  app.get(
    path,
    {
      schema: {
        operationId: "listDeadEvents",
        summary: "List dead events",
        tags: ["Operations"],
        description: "Returns the dead events of the inbox, oldest first.",
        querystring: ListQuery,
        response: { 200: DeadEventPage },
      },
    },
    async ({ query }) => {
      const [after = "0"] = parseCursor(query, { parts: ["bigint"] }) ?? [];
      const { rows, ...next } = await page(
        { limit: defaultLimit, ...query },
        { read: (limit) => deadLetters.list(db, { after, limit }), name: ({ cursor }) => cursor },
      );
      return { events: rows.map(toView), ...next };
    },
  );
}

const toView = <Event extends Pick<DeadLetter, "id" | "about" | "since">>({ id, about, since, ...event }: Event) => ({
  ...event,
  dlq_id: id,
  aggregate_key: about,
  dead_at: since,
});

function getRoute(app: HttpApp, { db, consumer }: InboxRoutesOptions): void {
  const deadLetters = inboxDeadLetters(consumer);
  app.get(
    `${path}/:dlq_id`,
    {
      schema: {
        operationId: "getDeadEvent",
        summary: "Get a dead event",
        tags: ["Operations"],
        description: "Returns a dead event of the inbox, with its payload, its last error and its redrives.",
        params: DlqParams,
        refusals: [deadLetterNotFound],
        response: { 200: DeadEventDetail },
      },
    },
    async ({ params: { dlq_id } }) => {
      const found = await deadLetters.show(db, dlq_id);
      if (!found) throw deadLetterNotFound(`${consumer} has never had a dead event with the number ${dlq_id}`);
      return toView(found);
    },
  );
}

function redriveRoute(app: HttpApp, { db, consumer, onRedriven }: InboxRoutesOptions): void {
  const redrive = redriveDeadLetter({ db, deadLetters: inboxDeadLetters(consumer), onRedriven });
  app.post(
    `${path}/:dlq_id/redrive`,
    {
      schema: {
        operationId: "redriveEvent",
        summary: "Redrive a dead event",
        tags: ["Operations"],
        description: "Processes a dead event of the inbox again. Repeating the call has no effect.",
        params: DlqParams,
        body: RedriveBody,
        refusals: [deadLetterNotFound],
        response: { 200: RedrivenView },
      },
    },
    ({ params: { dlq_id }, body }) => redrive(dlq_id, redriveRequest(body)),
  );
}
