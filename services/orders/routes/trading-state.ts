/** The kill switch. */
import { type HttpApp, ProblemView, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { everything, selectTradingState } from "../store/trading-state.ts";
import { mayLiftAnyHalt, readers, writers } from "./rules.ts";
import { Instrument, TradingStateBody, TradingStateView } from "./schemas.ts";

export function tradingStateRoutes(app: HttpApp, { authenticate, db, setTradingState }: Deps): void {
  app.get(
    "/v1/orders/trading-state",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "getTradingState",
        summary: "What was set, over all (*) and per instrument; whatever is not listed is active",
        response: { 200: Type.Object({ states: Type.Array(TradingStateView) }) },
      },
    },
    async () => ({ states: await selectTradingState(db) }),
  );
  app.put(
    "/v1/orders/trading-state",
    {
      ...requires(authenticate, writers),
      schema: {
        operationId: "setTradingState",
        summary:
          "Stops trading, or lets it go on; it holds from the next send on. What another caller has stopped goes on only with " +
          "the scope orders:resume",
        body: TradingStateBody,
        response: { 200: TradingStateView, 403: ProblemView },
      },
    },
    async (request) =>
      setTradingState(
        { scope: everything, ...request.body, set_by: request.caller },
        { mayLiftAny: mayLiftAnyHalt(request) },
      ),
  );
  app.put(
    "/v1/orders/trading-state/:instrument",
    {
      ...requires(authenticate, writers),
      schema: {
        operationId: "setTradingStateOfInstrument",
        summary: "The same for one instrument; the stricter of both holds",
        params: Type.Object({ instrument: Instrument }),
        body: TradingStateBody,
        response: { 200: TradingStateView, 403: ProblemView, 422: ProblemView },
      },
    },
    async (request) =>
      setTradingState(
        { scope: request.params.instrument, ...request.body, set_by: request.caller },
        { mayLiftAny: mayLiftAnyHalt(request) },
      ),
  );
}
