/** Dead letters for staff: by error, by filter, one with its payload, and redriving or discarding some. */

import { named } from "@todoke/contracts/api";
import {
  guarded,
  IdempotencyHeaders,
  idempotencyKey,
  page,
  parseCursor,
  problems,
  sendResponse,
  staffActor,
} from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { Type } from "typebox";
import { deadLetterNotFound } from "../problems.ts";
import { readDeadLetterGroups } from "./dead-letter-groups.ts";
import { findTable, operators, type StaffRouteDeps, viewers } from "./deps.ts";
import { discardDeadLetters } from "./discard-dead-letters.ts";
import { toFilter } from "./filter.ts";
import { redriveDeadLetters } from "./redrive-dead-letters.ts";
import { countMax } from "./start-dead-letter-batch.ts";
import {
  DeadLetterDetail,
  DeadLetterPage,
  FilterQuery,
  GroupsQuery,
  GroupsView,
  ListQuery,
  PreviewView,
  RowParams,
  RowsBody,
  RowsResult,
  TableParams,
} from "./views.ts";

const defaultLimit = 50;
const ServiceGroups = named("ServiceDeadLetterGroups", GroupsView);

export function deadLetterRoutes(deps: StaffRouteDeps): void {
  const { app, prefix, authenticate, reads, hide } = deps;
  const path = `${prefix}/dead-letters`;
  const tags = ["Operations"];

  app.get(
    `${path}/groups`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "listDeadLetterGroups",
      summary: "Group dead letters by error",
      tags,
      description:
        "Returns the dead letters of the service by table and error. Errors that differ in numbers and ids only are one group.",
      querystring: GroupsQuery,
      refusals: [problems.notFound],
      response: { 200: ServiceGroups },
    }),
    async ({ query: { table } }) =>
      readDeadLetterGroups({ ...deps, deadLetters: table === undefined ? deps.deadLetters : [findTable(deps, table)] }),
  );
  app.get(
    `${path}/:table`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "listDeadLetters",
      summary: "List dead letters",
      tags,
      description: "Returns the dead letters of a table that match the filter, oldest first.",
      params: TableParams,
      querystring: ListQuery,
      refusals: [problems.notFound],
      response: { 200: DeadLetterPage },
    }),
    async ({ params, query }) => {
      const table = findTable(deps, params.table);
      const [after = "0"] = parseCursor(query, { parts: ["bigint"] }) ?? [];
      const { rows, ...next } = await page(
        { limit: defaultLimit, ...query },
        { read: (limit) => table.list(reads, { ...toFilter(query), after, limit }), name: ({ cursor }) => cursor },
      );
      return { dead_letters: rows, ...next };
    },
  );
  app.get(
    `${path}/:table([^/:]+)::preview`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "previewDeadLetters",
      summary: "Count dead letters",
      tags,
      description: "Counts the dead letters that match the filter, before a batch changes them.",
      params: TableParams,
      querystring: Type.Object(FilterQuery),
      refusals: [problems.notFound],
      response: { 200: PreviewView },
    }),
    async ({ params, query }) => {
      const { count, through } = await findTable(deps, params.table).preview(reads, toFilter(query), countMax + 1);
      return { count: Math.min(count, countMax), capped: count > countMax, through };
    },
  );
  app.get(
    `${path}/:table/:id`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "getDeadLetter",
      summary: "Get a dead letter",
      tags,
      description: "Returns a row with its payload and its redrives, also after it was redriven or discarded.",
      params: RowParams,
      refusals: [problems.notFound, deadLetterNotFound],
      response: { 200: DeadLetterDetail },
    }),
    async ({ params: { table, id } }) => readDetail(reads, findTable(deps, table), id),
  );
  for (const [verb, command] of [
    ["redrive", redriveDeadLetters(deps)],
    ["discard", discardDeadLetters(deps)],
  ] as const)
    app.post(
      `${path}/:table([^/:]+)::${verb}`,
      guarded(authenticate, operators, {
        hide,
        passesOnRefusals: hide,
        operationId: `${verb}DeadLetters`,
        summary: verb === "redrive" ? "Redrive dead letters" : "Discard dead letters",
        tags,
        description:
          verb === "redrive"
            ? "Makes dead letters ready again, with all their attempts. If two operators redrive a row at once, it is redriven once."
            : "Deletes dead letters, which are then never retried. A copy is kept.",
        params: TableParams,
        headers: IdempotencyHeaders,
        body: RowsBody,
        refusals: [problems.notFound],
        response: { 200: RowsResult },
      }),
      async (request, reply) => {
        const key = idempotencyKey(request, request.caller);
        const table = findTable(deps, request.params.table);
        return sendResponse(reply, await command({ key, actor: staffActor(request), table, ...request.body }));
      },
    );
}

type Shown = Readonly<Record<string, unknown>>;

async function readDetail(db: Db, table: DeadLetters, id: string) {
  const shown = table.isId(id) ? await table.show(db, id) : undefined;
  if (shown) {
    const { dead, redrives, ...row } = shown as typeof shown & Shown;
    return { ...toDetail(row), redrives, state: dead ? ("dead" as const) : ("not dead" as const) };
  }
  const found = table.isId(id) ? await table.showDiscarded(db, id) : undefined;
  if (!found) throw deadLetterNotFound(`${table.name} has never had a dead letter with the id ${id}`);
  const {
    row,
    redrives,
    discarded_at: at,
    discarded_by: by,
    reason,
    attempt_count,
    last_error,
    copy_removed_at,
  } = found;
  const known = { id: found.id, event_type: null, about: null, attempt_count, last_error, since: null, group: null };
  return {
    ...toDetail({ ...known, ...row }),
    redrives,
    state: "discarded" as const,
    discarded: { at, by, reason, copy_removed_at },
  };
}

function toDetail({ payload = null, payload_base64, headers, ...row }: Shown) {
  const { id, event_type, about, attempt_count, last_error, since, group, ...fields } = row;
  return {
    ...({ id, event_type, about, attempt_count, last_error, since, group } as {
      id: string;
      event_type: string | null;
      about: string | null;
      attempt_count: number;
      last_error: string | null;
      since: string | null;
      group: string | null;
    }),
    payload,
    ...(typeof payload_base64 === "string" && { payload_base64 }),
    ...(headers !== null && typeof headers === "object" && { headers: headers as Record<string, string> }),
    fields,
  };
}
