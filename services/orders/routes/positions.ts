/** Positions and open exposure by instrument, over all callers. */
import { named, orNull } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectPositions } from "../store/positions.ts";
import { readersOfAll } from "./access.ts";
import { Instrument } from "./schemas.ts";

const Decimal = (description: string) => Type.String({ description, examples: ["0.5"] });

export const PositionView = named("Position", {
  adapter: Type.String({ description: "The kind of broker." }),
  instrument: Instrument,
  position: Decimal("Bought minus sold, by the fills."),
  open_buy_qty: Decimal("What open orders may still buy."),
  open_sell_qty: Decimal("What open orders may still sell."),
  open_notional: Decimal("Open orders times their limit price; market orders times the reference price."),
  max_position: orNull(Decimal("The limit of the position with all open orders filled; null: no limit.")),
  max_open_notional: orNull(Decimal("The limit of open_notional; null: no limit.")),
});

const Page = named("PositionPage", { positions: Type.Array(PositionView), next_cursor: NextCursor });

export function positionsRoutes(app: HttpApp, { authenticate, db, limitsOf }: Deps): void {
  app.get(
    "/v1/orders/positions",
    guarded(authenticate, readersOfAll, {
      operationId: "listPositions",
      summary: "List positions",
      description:
        "Returns what was bought minus what was sold of each instrument, by the fills of all callers' orders, and what open orders may " +
        "still buy and sell.",
      tags: ["Orders"],
      querystring: Type.Object(PageQuery),
      response: { 200: Page },
    }),
    async ({ query }) => {
      const [adapter, instrument] = parseCursor(query, { parts: ["text", "text"] }) ?? [];
      const after = adapter === undefined || instrument === undefined ? undefined : { adapter, instrument };
      const { rows, ...next } = await page(query, {
        read: (limit) => selectPositions(db, { after, limit }),
        name: (row) => `${row.adapter} ${row.instrument}`,
      });
      return { positions: rows.map((row) => ({ ...row, ...limitsOf(row.instrument) })), ...next };
    },
  );
}
