/** Commands of the orders service's clients: orders, single and twice at once, reused keys, and invalid orders. */
import { callers } from "../callers.ts";
import type { Command } from "../history.ts";
import type { Random } from "../random.ts";
import { answeredKeys } from "./answered-keys.ts";
import type { WorkItem, Workload } from "./index.ts";

export function ordersWorkload(random: Random): Workload {
  const client = random.between(0, 2 ** 32).toString(36);
  let commandCount = 0;
  const answered = answeredKeys(random);

  function command(more: Partial<Command> = {}): Command {
    const id = `o-${client}-${++commandCount}`;
    const key = more.key ?? `key-${id}`;
    return {
      service: "orders",
      kind: "order",
      caller: random.pick(callers),
      path: "/do/order",
      ...more,
      key,
      id,
      body: {
        order_id: id,
        user_id: `u-${random.between(1, 20)}`,
        instrument: random.pick(["BTC-USD", "ETH-USD"]),
        side: random.pick(["BUY", "SELL"]),
        qty: String(random.between(1, 20)),
        price: String(random.between(100, 200)),
        requested_at: "2026-01-31T09:30:00Z",
        ...more.body,
        idempotency_key: key,
      },
    };
  }

  const single = (): WorkItem => ({ commands: [command()], by: "one", impatient: random.chance(0.1) });
  const twice = (): WorkItem => ({ commands: [command()], by: "twice" });
  /** The same key is independent for another caller. */
  const sameKeyElsewhere = (): WorkItem => {
    const { key, caller } = answered.take();
    const other = callers.find((each) => each !== caller) ?? caller;
    return { commands: [command({ key, caller: other })], by: "one" };
  };
  const sameKeyOtherOrder = (): WorkItem => {
    const { key, caller } = answered.take();
    return { commands: [command({ key, caller, wants: "refusal" })], by: "one" };
  };
  const malformed = (): WorkItem => ({ commands: [command({ body: { qty: "0" }, wants: "refusal" })], by: "one" });

  const mix = [
    { weight: 80, make: single },
    { weight: 10, make: twice },
    { weight: 4, make: sameKeyElsewhere },
    { weight: 4, make: sameKeyOtherOrder },
    { weight: 2, make: malformed },
  ];
  return {
    next: () => (answered.isEmpty ? single() : random.weighted(mix).make()),
    onAccepted: answered.onAccepted,
  };
}
