/** The routes that every service has for staff: dead letters and batches of them. */
import { ReasonBody } from "@todoke/contracts/api";
import { BatchBody, DeadLetterActBody, DeadLetterFilterQuery, DeadLetterListQuery } from "@todoke/service";
import { Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody } from "./schemas.ts";
import { operators, type Texts, viewers } from "./staff-acts.ts";

const Service = Type.String({ minLength: 1, maxLength: 63, description: "The service.", examples: ["notification"] });
const Table = Type.String({ minLength: 1, maxLength: 63, description: "A table with dead letters." });
const Id = Type.String({ minLength: 1, maxLength: 128 });
const ofService = Type.Object({ service: Service });
const ofTable = Type.Object({ service: Service, table: Table });
const ofBatch = Type.Object({ service: Service, batch_id: Id });

type More = Partial<Pick<ForwardedRoute, "params" | "query" | "body" | "creates">>;

/** What every service has, below /v1/admin of the service. */
function ofEveryService(method: "GET" | "POST", path: string, texts: Texts & More): ForwardedRoute {
  const isChange = method === "POST";
  return {
    method,
    path: `/v1/admin/services/:service${path}`,
    upstreamPath: `/v1/admin${path.replace(/\(\[\^\/:\]\+\)::/, ":")}`,
    rule: isChange ? operators : viewers,
    tag: "Operations",
    ...(isChange && { idempotent: true }),
    params: ofService,
    response: PassThroughBody,
    ...texts,
  };
}

const verb = (path: string, name: string) => `${path}([^/:]+)::${name}`;

export const staffRoutes: readonly ForwardedRoute[] = [
  ofEveryService("GET", "/dead-letters/:table", {
    operationId: "listDeadLetters",
    summary: "List dead letters",
    description: "Returns the dead letters of a table that match the filter, oldest first.",
    params: ofTable,
    query: DeadLetterListQuery,
  }),
  ofEveryService("GET", verb("/dead-letters/:table", "preview"), {
    operationId: "previewDeadLetters",
    summary: "Count dead letters",
    description: "Counts the dead letters that match the filter, before a batch changes them.",
    params: ofTable,
    query: Type.Object(DeadLetterFilterQuery),
  }),
  ofEveryService("GET", "/dead-letters/:table/:id", {
    operationId: "getDeadLetter",
    summary: "Get a dead letter",
    description: "Returns a row with its payload and its redrives, also after it was redriven or discarded.",
    params: Type.Object({ service: Service, table: Table, id: Id }),
  }),
  ofEveryService("POST", verb("/dead-letters/:table", "redrive"), {
    operationId: "redriveDeadLetters",
    summary: "Redrive dead letters",
    description:
      "Makes dead letters ready again, with all their attempts. Of two operators who redrive a row, one does.",
    params: ofTable,
    body: DeadLetterActBody,
  }),
  ofEveryService("POST", verb("/dead-letters/:table", "discard"), {
    operationId: "discardDeadLetters",
    summary: "Discard dead letters",
    description: "Deletes dead letters, which are then never tried again. A copy is kept.",
    params: ofTable,
    body: DeadLetterActBody,
  }),
  ofEveryService("POST", "/dead-letter-batches", {
    operationId: "startDeadLetterBatch",
    summary: "Start a batch",
    description:
      "Redrives or discards all dead letters of a table that match the filter, up to the position of the preview.",
    body: BatchBody,
    creates: true,
  }),
  ofEveryService("GET", "/dead-letter-batches", {
    operationId: "listDeadLetterBatches",
    summary: "List batches",
    description: "Returns the newest batches of dead letters.",
  }),
  ofEveryService("GET", "/dead-letter-batches/:batch_id", {
    operationId: "getDeadLetterBatch",
    summary: "Get a batch",
    description: "Returns how far a batch of dead letters is.",
    params: ofBatch,
  }),
  ofEveryService("POST", verb("/dead-letter-batches/:batch_id", "stop"), {
    operationId: "stopDeadLetterBatch",
    summary: "Stop a batch",
    description: "Stops a batch after its current step. What it has done stays.",
    params: ofBatch,
    body: ReasonBody,
  }),
  ofEveryService("GET", "/last-audit", {
    operationId: "getLastAudit",
    summary: "Get the last audit",
    description: "Returns when the service last compared its own tables, and what it found.",
  }),
];
