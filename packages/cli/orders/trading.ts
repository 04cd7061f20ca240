/** `todoke orders halt`, `cancel-only`, `resume` and `state`: the kill switch. It takes effect without confirmation. */
import { InstrumentsError, openInstruments } from "@todoke/orders/instruments";
import { allInstruments, selectTradingState, type TradingMode, type TradingState } from "@todoke/orders/operator";
import { setTradingState } from "@todoke/orders/set-trading-state";
import { setTradingStateOfInstrument } from "@todoke/orders/set-trading-state-of-instrument";
import type { Invocation } from "../command.ts";
import { SettingsError, UsageError } from "../errors.ts";
import { parseOperatorReason } from "../operator.ts";
import { formatTime, oneLine, print, table } from "../output.ts";
import { withOrders } from "./with-orders.ts";

export async function setTrading(mode: TradingMode, call: Invocation): Promise<number> {
  const [scope = allInstruments, ...more] = call.args;
  if (more.length > 0) throw new UsageError("Name one instrument, or none for all.");
  const { reason, by: set_by } = parseOperatorReason(call.values);
  const instruments = readInstruments(call.env.ORDERS_INSTRUMENTS);
  const states = await withOrders(call, async ({ db, wake }) => {
    const options = { db, onChanged: () => {} };
    const set =
      scope === allInstruments ? setTradingState(options) : setTradingStateOfInstrument({ ...options, instruments });
    await set({ scope, mode, reason, set_by }, { mayLiftAny: true });
    await wake("trading_state");
    return selectTradingState(db);
  });
  printStates(states, call);
  return 0;
}

export async function showTrading(call: Invocation): Promise<number> {
  if (call.args.length > 0) throw new UsageError("state takes no arguments: it shows all instruments.");
  printStates(await withOrders(call, ({ db }) => selectTradingState(db)), call);
  return 0;
}

/** ORDERS_INSTRUMENTS must be the file of the service, so that a misspelt instrument is rejected. */
function readInstruments(path: string | undefined) {
  try {
    return openInstruments(path || undefined);
  } catch (error) {
    throw error instanceof InstrumentsError ? new SettingsError(error.errors) : error;
  }
}

function printStates(states: readonly TradingState[], { switches }: Invocation): void {
  print(switches.has("json") ? JSON.stringify({ states }, null, 2) : formatStates(states));
}

function formatStates(states: readonly TradingState[]): string {
  const stopped = states.filter(({ mode }) => mode !== "active");
  if (stopped.length === 0) return "All instruments are traded.";
  return table([["instrument", "mode", "since", "by", "reason"], ...stopped.map(cells)]);
}

const cells = ({ scope, mode, set_at, set_by, reason }: TradingState): string[] => [
  scope === allInstruments ? "(all)" : scope,
  mode,
  formatTime(set_at),
  oneLine(set_by),
  oneLine(reason),
];
