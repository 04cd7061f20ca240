/**
 * Stops trading, or lets it go on: over all, or for one instrument. It holds from the next send on, also after a restart.
 *
 * Everybody who may order may stop. To be less strict than now, a caller must have set alone all that is set, or be one who
 * may lift any halt: whoever stopped trading for a reason can rely on it that no other caller's program starts it again.
 */
import { type Db, transaction } from "@todoke/kernel/db";
import type { Instruments } from "../instruments/index.ts";
import { haltOfAnother, instrumentNotAllowed } from "../problems.ts";
import {
  everything,
  lockTradingState,
  type NewTradingState,
  type TradingMode,
  type TradingState,
  upsertTradingState,
} from "../store/trading-state.ts";

/** What the one who asks may do besides. */
interface Lifting {
  readonly mayLiftAny: boolean;
}

export type SetTradingState = (state: NewTradingState, lifting: Lifting) => Promise<TradingState>;

export interface TradingStateOptions {
  readonly db: Db;
  readonly instruments: Instruments;
  /** The wake-up of the senders: what was given back may go now. */
  readonly onChanged: () => void;
}

export function setTradingState({ db, instruments, onChanged }: TradingStateOptions): SetTradingState {
  return async (state, { mayLiftAny }) => {
    // A name that is spelt wrong would stop nothing, and whoever set it would believe that it did.
    if (state.scope !== everything && !instruments.byName.has(state.scope))
      throw instrumentNotAllowed(`${state.scope} is not on the list of instruments; nothing was changed`);
    const set = await transaction(db, async (tx) => {
      const { mode, othersSince } = await lockTradingState(tx, state);
      if (!mayLiftAny && strictness[state.mode] < strictness[mode] && othersSince !== null)
        throw haltOfAnother(`${othersSince} has a part in this ${mode}; to lift it needs the scope orders:resume`);
      return upsertTradingState(tx, state);
    });
    onChanged();
    return set;
  };
}

const strictness: Readonly<Record<TradingMode, number>> = { active: 0, "cancel-only": 1, halt: 2 };
