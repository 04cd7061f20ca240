/** Stops trading, or lets it go on: over all, or for one instrument. It holds from the next send on, also after a restart. */
import type { Db } from "@todoke/kernel/db";
import type { Instruments } from "../instruments/index.ts";
import { instrumentNotAllowed } from "../problems.ts";
import { everything, type NewTradingState, type TradingState, upsertTradingState } from "../store/trading-state.ts";

export type SetTradingState = (state: NewTradingState) => Promise<TradingState>;

export interface TradingStateOptions {
  readonly db: Db;
  readonly instruments: Instruments;
  /** The wake-up of the senders: what was given back may go now. */
  readonly onChanged: () => void;
}

export function setTradingState({ db, instruments, onChanged }: TradingStateOptions): SetTradingState {
  return async (state) => {
    // A name that is spelt wrong would stop nothing, and whoever set it would believe that it did.
    if (state.scope !== everything && !instruments.byName.has(state.scope))
      throw instrumentNotAllowed(`${state.scope} is not on the list of instruments; nothing was changed`);
    const set = await upsertTradingState(db, state);
    onChanged();
    return set;
  };
}
