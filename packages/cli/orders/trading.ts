/** `todoke orders halt`, `cancel-only`, `resume` and `state`: the kill switch. It takes effect at once, and asks nothing. */
import { InstrumentsFaulty, openInstruments } from "@todoke/orders/instruments";
import { everything, selectTradingState, type TradingMode, type TradingState } from "@todoke/orders/operator";
import { setTradingState } from "@todoke/orders/set-trading-state";
import { setTradingStateOfInstrument } from "@todoke/orders/set-trading-state-of-instrument";
import type { Call } from "../command.ts";
import { Misconfigured, Misused } from "../faults.ts";
import { oneLine, say, table, toSeconds } from "../output.ts";
import { onOrders, saidOf } from "./open.ts";

export async function setTrading(mode: TradingMode, call: Call): Promise<number> {
  const [scope = everything, ...more] = call.names;
  if (more.length > 0) throw new Misused("One instrument at a time; all when none is named.");
  const { reason, by: set_by } = saidOf(call.values);
  const instruments = instrumentsOf(call.env.ORDERS_INSTRUMENTS);
  const states = await onOrders(call, async ({ db, wake }) => {
    const options = { db, onChanged: () => {} };
    const set =
      scope === everything ? setTradingState(options) : setTradingStateOfInstrument({ ...options, instruments });
    await set({ scope, mode, reason, set_by }, { mayLiftAny: true });
    await wake("trading_state").catch(() => {}); // It holds all the same: it is read before every send.
    return selectTradingState(db);
  });
  print(states, call);
  return 0;
}

export async function showTrading(call: Call): Promise<number> {
  if (call.names.length > 0) throw new Misused("The state is that of all instruments; name none.");
  print(await onOrders(call, ({ db }) => selectTradingState(db)), call);
  return 0;
}

/** Those that the service has, where the environment names the same file: a name that is spelt wrong would stop nothing. */
function instrumentsOf(path: string | undefined) {
  try {
    return openInstruments(path || undefined);
  } catch (error) {
    throw error instanceof InstrumentsFaulty ? new Misconfigured(error.faults) : error;
  }
}

function print(states: readonly TradingState[], { switches }: Call): void {
  say(switches.has("json") ? JSON.stringify({ states }, null, 2) : textOf(states));
}

function textOf(states: readonly TradingState[]): string {
  const stopped = states.filter(({ mode }) => mode !== "active");
  if (stopped.length === 0) return "Nothing is stopped: all instruments are traded.";
  return table([["instrument", "mode", "since", "by", "reason"], ...stopped.map(cells)]);
}

const cells = ({ scope, mode, set_at, set_by, reason }: TradingState): string[] => [
  scope === everything ? "(all)" : scope,
  mode,
  toSeconds(set_at),
  oneLine(set_by),
  oneLine(reason),
];
