/** Sets the kill switch of one instrument. A misspelt name is rejected: it would stop nothing. */
import type { Instruments } from "../instruments/index.ts";
import { instrumentNotAllowed } from "../problems.ts";
import { type SetTradingState, setTradingState, type TradingStateOptions } from "./set-trading-state.ts";

export function setTradingStateOfInstrument({
  instruments,
  ...options
}: TradingStateOptions & { readonly instruments: Instruments }): SetTradingState {
  const set = setTradingState(options);
  return async (state, setter) => {
    if (!instruments.byName.has(state.scope))
      throw instrumentNotAllowed(`${state.scope} is not on the list of instruments. Nothing was changed.`);
    return set(state, setter);
  };
}
