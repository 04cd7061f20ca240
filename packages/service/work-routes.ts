/** The claimed tables of a service as work, for operators: backlog, oldest due rows, and the rows of one user or key. */
import { named } from "@todoke/contracts/api";
import { type HttpApp, problems } from "@todoke/http";
import { type ClaimedTable, readBacklog, readByColumn, readOldestDue, type WorkRow } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";

export interface WorkTable {
  readonly table: ClaimedTable;
  /** Indexed columns by which its rows can be found: "user_id". */
  readonly lookup?: readonly string[];
}

const RowView = named("WorkRow", {
  key: Type.String({ description: "The primary key." }),
  status: Type.String(),
  attempt_count: Type.Integer({ description: "Attempts so far." }),
  next_retry_at: Type.String({ description: "When it is due." }),
  last_error: Type.Union([Type.String(), Type.Null()], { description: "The error of the last attempt." }),
  locked_by: Type.Union([Type.String(), Type.Null()], { description: "The worker that has claimed it." }),
  lease_until: Type.Union([Type.String(), Type.Null()], { description: "Until when the claim is exclusive." }),
});
const Rows = named("WorkRows", { rows: Type.Array(RowView) });
const TableName = Type.String({ maxLength: 63, description: "A claimed table; `listWork` lists them." });
const ColumnName = Type.String({ maxLength: 63, description: "A column that the table can be searched by." });
const defaultLimit = 20;
const Limit = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: `Rows at most; the default is ${defaultLimit}.` }),
  ),
});

const BacklogView = named("Backlog", {
  table: Type.String(),
  ready: Type.Integer({ description: "Rows that a worker can claim now." }),
  claimed: Type.Integer({ description: "Rows that a worker has claimed." }),
  waiting: Type.Integer({ description: "Rows between two attempts, if they have a status of their own." }),
  oldest_due_seconds: Type.Number({
    description: "Time for which the oldest due row has been due; 0 if none is due.",
  }),
});

const BacklogsView = named("Backlogs", { tables: Type.Array(BacklogView) });

export function workRoutes(
  app: HttpApp,
  { db, tables }: { readonly db: Db; readonly tables: readonly WorkTable[] },
): void {
  const find = (name: string): WorkTable => {
    const found = tables.find(({ table }) => table.table === name);
    if (found) return found;
    throw problems.notFound(`${name} is not a claimed table here; there are ${tables.map(({ table }) => table.table)}`);
  };

  app.get(
    "/debug/work",
    {
      schema: {
        operationId: "listWork",
        summary: "List backlogs",
        tags: ["Operations"],
        description: "Returns the claimed tables of the service, each with its backlog.",
        response: { 200: BacklogsView },
      },
    },
    async () => ({ tables: await Promise.all(tables.map(({ table }) => backlogOf(db, table))) }),
  );

  app.get(
    "/debug/work/:table",
    {
      schema: {
        operationId: "listOldestDue",
        summary: "List due rows",
        tags: ["Operations"],
        description: "Returns rows of a table that a worker can claim now, the longest due first.",
        params: Type.Object({ table: TableName }),
        querystring: Limit,
        refusals: [problems.notFound],
        response: { 200: Rows },
      },
    },
    async ({ params, query: { limit = defaultLimit } }) => ({
      rows: (await readOldestDue(db, find(params.table).table, limit)).map(toView),
    }),
  );

  app.get(
    "/debug/work/:table/:column/:value",
    {
      schema: {
        operationId: "listWorkOf",
        summary: "List rows of a user or key",
        tags: ["Operations"],
        description: "Returns rows of a table in any status, found by an indexed column.",
        params: Type.Object({
          table: TableName,
          column: ColumnName,
          value: Type.String({ maxLength: 128, description: "The value of the column, such as a user's id." }),
        }),
        querystring: Limit,
        refusals: [problems.notFound],
        response: { 200: Rows },
      },
    },
    async ({ params: { table: name, column, value }, query: { limit = defaultLimit } }) => {
      const { table, lookup = [] } = find(name);
      if (!lookup.includes(column))
        throw problems.notFound(
          `rows of ${name} cannot be found by ${column}; use one of: ${lookup.join(", ") || "none"}`,
        );
      return { rows: (await readByColumn(db, table, { column, value, limit })).map(toView) };
    },
  );
}

async function backlogOf(db: Db, table: ClaimedTable) {
  const { oldestDueMs, ...counts } = await readBacklog(db, table);
  return { table: table.table, ...counts, oldest_due_seconds: oldestDueMs / 1_000 };
}

const toView = (row: WorkRow) => ({
  key: row.key,
  status: row.status,
  attempt_count: row.attempts,
  next_retry_at: row.dueAt,
  last_error: row.lastError,
  locked_by: row.lockedBy,
  lease_until: row.leaseUntil,
});
