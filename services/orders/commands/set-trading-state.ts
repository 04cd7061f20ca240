/**
 * Sets the kill switch, for all instruments or for one. It applies from the next send on, and survives a restart.
 *
 * Every caller who may order may stop trading. To be less strict, a caller must be the only one who has set the scope, or may lift
 * any halt: a caller who stops trading can rely on it that no other caller's program resumes it.
 */
import { recordStaffAct, type StaffAct, type StaffActor } from "@todoke/http";
import { type Db, transaction } from "@todoke/kernel/db";
import { haltOfAnother } from "../problems.ts";
import {
  allInstruments,
  lockTradingState,
  type NewTradingState,
  type TradingMode,
  type TradingState,
  upsertTradingState,
} from "../store/trading-state.ts";

interface Setter {
  /** May lift a halt of any caller. */
  readonly mayLiftAny: boolean;
  /** Set if a member of staff acts: the act is recorded. */
  readonly actor?: StaffActor;
}

export type SetTradingState = (state: NewTradingState, setter: Setter) => Promise<TradingState>;

export interface TradingStateOptions {
  readonly db: Db;
  /** Wakes the senders: postponed orders may be sent now. */
  readonly onChanged: () => void;
}

export function setTradingState({ db, onChanged }: TradingStateOptions): SetTradingState {
  return async (state, { mayLiftAny, actor }) => {
    const set = await transaction(db, async (tx) => {
      const { mode, setByOther } = await lockTradingState(tx, state);
      if (!mayLiftAny && strictness[state.mode] < strictness[mode] && setByOther !== null)
        throw haltOfAnother(`${setByOther} has also set ${mode}. Lifting it requires the scope orders:resume.`);
      if (actor) await recordStaffAct(tx, toStaffAct(actor, state, mode));
      return upsertTradingState(tx, state);
    });
    onChanged();
    return set;
  };
}

function toStaffAct(actor: StaffActor, { scope, mode, reason }: NewTradingState, from: TradingMode): StaffAct {
  const act = scope === allInstruments ? "setTradingState" : "setTradingStateOfInstrument";
  return { actor, act, target: scope, reason, details: { from, to: mode } };
}

const strictness: Readonly<Record<TradingMode, number>> = { active: 0, "cancel-only": 1, halt: 2 };
