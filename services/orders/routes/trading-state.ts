/** The kill switch. */
import { named, TradingStateBody } from "@todoke/contracts/api";
import { guarded, type HttpApp, type Principal, staffActor } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { haltOfAnother, instrumentNotAllowed } from "../problems.ts";
import { allInstruments, selectTradingState } from "../store/trading-state.ts";
import { mayLiftAnyHalt, readers, switchers } from "./access.ts";
import { Instrument, TradingStateView } from "./schemas.ts";

const TradingStates = named("TradingStates", { states: Type.Array(TradingStateView) });

export function tradingStateRoutes(
  app: HttpApp,
  { authenticate, db, setTradingState, setTradingStateOfInstrument }: Deps,
): void {
  app.get(
    "/v1/orders/trading-state",
    guarded(authenticate, readers, {
      operationId: "getTradingState",
      summary: "Get the trading state",
      description:
        "Lists what was set for all instruments (*) and for each. Instruments that are not listed are active.",
      tags: ["Trading state"],
      response: { 200: TradingStates },
    }),
    async () => ({ states: await selectTradingState(db) }),
  );
  app.put(
    "/v1/orders/trading-state",
    guarded(authenticate, switchers, {
      operationId: "setTradingState",
      summary: "Set the trading state",
      description:
        "Stops or resumes trading. Applies to all instruments from the next send on. Resuming trading that another caller has stopped requires the scope " +
        "orders:resume. This operation is idempotent and takes no Idempotency-Key.",
      tags: ["Trading state"],
      body: TradingStateBody,
      refusals: [haltOfAnother],
      response: { 200: TradingStateView },
    }),
    async (request) =>
      setTradingState(
        { scope: allInstruments, ...request.body, set_by: request.caller },
        { mayLiftAny: mayLiftAnyHalt(request), ...staffOf(request) },
      ),
  );
  app.put(
    "/v1/orders/trading-state/:instrument",
    guarded(authenticate, switchers, {
      operationId: "setTradingStateOfInstrument",
      summary: "Set the state of an instrument",
      description:
        "Stops or resumes trading of one instrument. The stricter of the instrument's state and that of all instruments applies.",
      tags: ["Trading state"],
      params: Type.Object({ instrument: Instrument }),
      body: TradingStateBody,
      refusals: [haltOfAnother, instrumentNotAllowed],
      response: { 200: TradingStateView },
    }),
    async (request) =>
      setTradingStateOfInstrument(
        { scope: request.params.instrument, ...request.body, set_by: request.caller },
        { mayLiftAny: mayLiftAnyHalt(request), ...staffOf(request) },
      ),
  );
}

/** Set if a person acts, and not a program. */
const staffOf = (request: { readonly principal: Principal | undefined }) =>
  request.principal?.kind === "user" ? { actor: staffActor(request) } : {};
