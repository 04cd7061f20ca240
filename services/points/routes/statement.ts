/**
 * A user's transactions, newest first, by pages and as a CSV file. Both read back from the newest transaction at the first
 * request, so new transactions do not shift the pages.
 */

import { Readable } from "node:stream";
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, requires } from "@todoke/http";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { type StatementPage, selectStatement } from "../store/statement.ts";
import { ownReaders, parseTime } from "./request.ts";
import { Kind, Origin, RequestTime, StatementView, UserId, UserParams } from "./schemas.ts";
import { rowsMax, statementCsv } from "./statement-csv.ts";

export function statementRoutes(app: HttpApp, deps: Deps): void {
  pagesRoute(app, deps);
  csvRoute(app, deps);
}

const Filters = Type.Object({
  kind: Type.Optional(Kind),
  source: Origin.source,
  source_id: Origin.source_id,
  from: Type.Optional(RequestTime("Posted at this time or later.")),
  to: Type.Optional(RequestTime("Posted before this time.")),
});

const TransactionPage = named("TransactionPage", {
  user_id: UserId,
  transactions: Type.Array(StatementView),
  next_cursor: NextCursor,
});

function pagesRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/statement",
    guarded(authenticate, ownReaders, {
      operationId: "listStatement",
      summary: "List transactions",
      tags: ["Points"],
      description: "Returns the statement of a user, newest first. Each transaction has the balance after it.",
      params: UserParams,
      querystring: Type.Object({ ...Filters.properties, ...PageQuery }),
      response: { 200: TransactionPage },
    }),
    async ({ params: { user_id }, query }) => {
      const range = { ...parseFilters(user_id, query), before: parseCursor(query, { parts: ["bigint"] })?.[0] };
      const { rows, ...next } = await page(query, {
        read: (limit) => selectStatement(db, { ...range, limit }),
        name: (row) => String(row.version),
      });
      return { user_id, transactions: rows, ...next };
    },
  );
}

function parseFilters(userId: string, query: Static<typeof Filters>): Omit<StatementPage, "limit"> {
  const { kind, source, source_id: sourceId, from, to } = query;
  return {
    userId,
    kinds: kind && [kind],
    source,
    sourceId,
    from: from && parseTime(from, "query.from", "microsecond"),
    to: to && parseTime(to, "query.to", "microsecond"),
  };
}

function csvRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/statement.csv",
    {
      ...requires(authenticate, ownReaders),
      exposeHeadRoute: false, // HEAD would read the file and discard it.
      schema: {
        operationId: "getStatementCsv",
        summary: "Export transactions as CSV",
        tags: ["Points"],
        description:
          `Returns a header row and at most the newest ${rowsMax.toLocaleString("en")} transactions. Use \`from\` and \`to\` ` +
          "to export more; `version` shows that none is missing. A text that a spreadsheet would read as a formula is " +
          "prefixed with an apostrophe.",
        params: UserParams,
        querystring: Filters,
        produces: ["text/csv"],
        response: { 200: Type.Unsafe<Readable>({ title: "StatementCsv", type: "string", description: "The file." }) },
      },
    },
    async ({ params: { user_id }, query }, reply) => {
      const filters = parseFilters(user_id, query);
      const parts = statementCsv((part) => selectStatement(db, { ...filters, ...part }));
      // The first part is read before the response begins, so that its failure is an error response and not a broken file.
      const first = await parts.next();
      return reply
        .header("content-type", "text/csv; charset=utf-8; header=present")
        .header("content-disposition", 'attachment; filename="points.csv"')
        .send(Readable.from(prepend(first, parts)));
    },
  );
}

async function* prepend({ value, done }: IteratorResult<string>, rest: AsyncGenerator<string>) {
  if (!done) yield value;
  yield* rest;
}
