/**
 * What clients of the orders service ask for: orders, alone and twice at once; keys used again by another caller, and with
 * another order; and orders that nobody can want.
 */
import { callers } from "../callers.ts";
import type { Dice } from "../dice.ts";
import type { Command } from "../history.ts";
import type { Wish, Workload } from "./index.ts";

const answeredMax = 20;

export function ordersWorkload(dice: Dice): Workload {
  const client = dice.between(0, 2 ** 32).toString(36);
  let made = 0;
  /** The last ones that were answered with success: their keys are taken, each once. */
  const answered: Command[] = [];

  function command(more: Partial<Command> = {}): Command {
    const id = `o-${client}-${++made}`;
    const key = more.key ?? `key-${id}`;
    return {
      service: "orders",
      kind: "order",
      caller: dice.pick(callers),
      path: "/do/order",
      ...more,
      key,
      id,
      body: {
        order_id: id,
        instrument: dice.pick(["BTC-USD", "ETH-USD"]),
        side: dice.pick(["BUY", "SELL"]),
        qty: String(dice.between(1, 20)),
        price: String(dice.between(100, 200)),
        requested_at: "2026-01-31T09:30:00Z",
        ...more.body,
        idempotency_key: key,
      },
    };
  }

  const single = (): Wish => ({ commands: [command()], by: "one", impatient: dice.chance(0.1) });
  const twice = (): Wish => ({ commands: [command()], by: "twice" });
  /** The same key means another order to another caller. */
  const sameKeyElsewhere = (): Wish => {
    const { key, caller } = takeAnswered();
    const other = callers.find((each) => each !== caller) ?? caller;
    return { commands: [command({ key, caller: other })], by: "one" };
  };
  const sameKeyOtherOrder = (): Wish => {
    const { key, caller } = takeAnswered();
    return { commands: [command({ key, caller, wants: "refusal" })], by: "one" };
  };
  const malformed = (): Wish => ({ commands: [command({ body: { qty: "0" }, wants: "refusal" })], by: "one" });

  /** A key is used again once only: the second use elsewhere would be the first one's conflict. */
  function takeAnswered(): Command {
    const [taken] = answered.splice(dice.between(0, answered.length - 1), 1);
    return taken as Command;
  }

  const mix = [
    { weight: 80, make: single },
    { weight: 10, make: twice },
    { weight: 4, make: sameKeyElsewhere },
    { weight: 4, make: sameKeyOtherOrder },
    { weight: 2, make: malformed },
  ];
  return {
    next: () => (answered.length === 0 ? single() : dice.weighted(mix).make()),
    heard(one) {
      if (one.key !== `key-${one.id}`) return;
      answered.push(one);
      if (answered.length > answeredMax) answered.shift();
    },
  };
}
