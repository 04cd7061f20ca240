/**
 * What happened to a user's points, newest first, with the balance after each: by pages, and as a file.
 *
 * Both go back from the newest transaction at the first look, so that what others book meanwhile moves nothing.
 */
import { Readable } from "node:stream";
import { cursorOf, type HttpApp, NextCursor, PageQuery, page, requires } from "@todoke/http";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { type StatementPage, selectStatement } from "../store/statement.ts";
import { ownReaders, timeOf } from "./request.ts";
import { About, GivenTime, Kind, OneUser, StatementView, UserId } from "./schemas.ts";
import { rowsMax, statementCsv } from "./statement-csv.ts";

export function statementRoutes(app: HttpApp, deps: Deps): void {
  pagesRoute(app, deps);
  csvRoute(app, deps);
}

const Filters = Type.Object({
  kind: Type.Optional(Kind),
  source: About.source,
  source_id: About.source_id,
  from: Type.Optional(GivenTime("Booked then or later.")),
  to: Type.Optional(GivenTime("Booked before then.")),
});

function pagesRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/statement",
    {
      ...requires(authenticate, ownReaders),
      schema: {
        operationId: "listStatement",
        summary: "What happened to a user's points, newest first, each with the balance after it",
        params: OneUser,
        querystring: Type.Object({ ...Filters.properties, ...PageQuery }),
        response: {
          200: Type.Object({ user_id: UserId, transactions: Type.Array(StatementView), next_cursor: NextCursor }),
        },
      },
    },
    async ({ params: { user_id }, query }) => {
      const asked = { ...filtersOf(user_id, query), before: cursorOf(query, { parts: ["bigint"] })?.[0] };
      const { rows, ...next } = await page(query, {
        read: (limit) => selectStatement(db, { ...asked, limit }),
        name: (row) => String(row.version),
      });
      return { user_id, transactions: rows, ...next };
    },
  );
}

function filtersOf(userId: string, query: Static<typeof Filters>): Omit<StatementPage, "limit"> {
  const { kind, source, source_id: sourceId, from, to } = query;
  return {
    userId,
    kinds: kind && [kind],
    source,
    sourceId,
    from: from && timeOf(from, "query.from", "microsecond"),
    to: to && timeOf(to, "query.to", "microsecond"),
  };
}

function csvRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/statement.csv",
    {
      ...requires(authenticate, ownReaders),
      exposeHeadRoute: false, // It would read a file that nobody gets.
      schema: {
        operationId: "exportStatement",
        summary: "The statement as a file: CSV with a header row, newest first",
        description:
          `The newest ${rowsMax.toLocaleString("en")} rows at the most: narrow it down by \`from\` and \`to\` where there are ` +
          "more; `version` shows that none is missing in between. A text that a spreadsheet would take for a formula " +
          "begins with an apostrophe.",
        params: OneUser,
        querystring: Filters,
        produces: ["text/csv"],
        response: { 200: Type.Unsafe<Readable>({ type: "string" }) },
      },
    },
    async ({ params: { user_id }, query }, reply) => {
      const filters = filtersOf(user_id, query);
      const text = statementCsv((part) => selectStatement(db, { ...filters, ...part }));
      // The first part is read before anything is sent: when that fails, it is an answer and not a broken file.
      const first = await text.next();
      return reply
        .header("content-type", "text/csv; charset=utf-8; header=present")
        .header("content-disposition", 'attachment; filename="points.csv"')
        .send(Readable.from(beginningWith(first, text)));
    },
  );
}

async function* beginningWith({ value, done }: IteratorResult<string>, rest: AsyncGenerator<string>) {
  if (!done) yield value;
  yield* rest;
}
