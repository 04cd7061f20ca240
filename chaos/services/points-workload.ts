/**
 * Commands of the points service's clients: points of few users are added (some expire within seconds), spent, held, captured,
 * released and refunded; grants are reserved alone and many at once, and some are cancelled.
 */
import { callers } from "../callers.ts";
import type { Command } from "../history.ts";
import type { Random } from "../random.ts";
import { answeredKeys } from "./answered-keys.ts";
import type { WorkItem, Workload } from "./index.ts";

const users = 12;
const batchMax = 8;

/** How many IDs of holds, spends and reservations a client remembers for its next commands. */
const idsMax = 20;

const paths = {
  add: "/v1/points/additions",
  spend: "/v1/points/spends",
  hold: "/v1/points/holds",
  refund: "/v1/points/refunds",
  reserve: "/v1/points/reservations",
} as const;

export function pointsWorkload(random: Random): Workload {
  const client = random.between(0, 2 ** 32).toString(36);
  let commandCount = 0;
  const answered = answeredKeys(random);
  const [holds, spends, reservations] = [idList(random), idList(random), idList(random)];

  function command(kind: string, more: Partial<Command> = {}): Command {
    const id = `p-${client}-${++commandCount}`;
    const body = { source: "chaos", source_id: id, ...more.body };
    return {
      service: "points",
      caller: random.pick(callers),
      key: `key-${id}`,
      path: paths[kind as keyof typeof paths],
      ...more,
      id,
      kind,
      body,
    };
  }

  const user_id = () => `u_${random.between(1, users)}`;
  const inSeconds = (min: number, max: number) => new Date(Date.now() + random.between(min, max) * 1_000).toISOString();
  const one = (command: Command): WorkItem => ({ commands: [command], by: "one", impatient: random.chance(0.1) });

  function add(): Command {
    const point_amount = random.between(1, 100);
    const expires = random.chance(0.2) && { expires_at: inSeconds(2, 6) };
    return command("add", { body: { user_id: user_id(), point_amount, ...expires } });
  }
  const spend = () => command("spend", { body: { user_id: user_id(), point_amount: random.between(1, 60) } });
  const hold = () =>
    command("hold", {
      body: { user_id: user_id(), point_amount: random.between(1, 40), ttl_seconds: random.between(1, 5) },
    });
  function endHold(): Command {
    const kind = random.pick(["capture", "release"]);
    const part = kind === "capture" && random.chance(0.5) && { point_amount: 1 };
    return command(kind, { path: `${paths.hold}/${holds.take()}/${kind}`, body: { ...part } });
  }
  const refund = () => command("refund", { body: { transaction_id: spends.take() } });

  /** The reason of a reservation is the ID of its command. */
  function reserve(more: Partial<Command> = {}): Command {
    const made = command("reserve", more);
    const body = {
      user_id: user_id(),
      point_amount: random.between(1, 50),
      execute_at: inSeconds(0, 4),
      reason: made.id,
    };
    return { ...made, body };
  }
  const cancel = () => command("cancel", { method: "DELETE", path: `${paths.reserve}/${reservations.take()}` });
  function reserveMany(): WorkItem {
    const commands = Array.from({ length: random.between(2, batchMax) }, () => reserve({ caller: callers[0] }));
    const items = commands.map(({ key, body }) => ({ idempotency_key: key, ...body }));
    return { commands, by: "batch", batch: { path: `${paths.reserve}/batch`, body: { items }, split: splitBatch } };
  }

  /** The same key is independent for another caller. */
  function sameKeyElsewhere(): Command {
    const { key, caller } = answered.take();
    const other = callers.find((each) => each !== caller) ?? caller;
    return { ...add(), caller: other, key };
  }
  function sameKeyOtherBody(): Command {
    const { key, caller } = answered.take();
    return { ...add(), caller, key, wants: "refusal" };
  }

  const mix = [
    { weight: 30, make: () => one(add()) },
    { weight: 6, make: (): WorkItem => ({ commands: [add()], by: "twice" }) },
    { weight: 14, make: () => one(spend()) },
    { weight: 12, make: () => one(hold()) },
    { weight: 10, make: () => one(holds.isEmpty ? hold() : endHold()) },
    { weight: 5, make: () => one(spends.isEmpty ? spend() : refund()) },
    { weight: 12, make: () => one(reserve()) },
    { weight: 3, make: reserveMany },
    { weight: 4, make: () => one(reservations.isEmpty ? reserve() : cancel()) },
    { weight: 2, make: () => one(answered.isEmpty ? add() : sameKeyElsewhere()) },
    { weight: 2, make: () => one(answered.isEmpty ? add() : sameKeyOtherBody()) },
  ];
  return {
    next: () => random.weighted(mix).make(),
    onAccepted(accepted, answer) {
      const { hold_id, transaction_id, id } = JSON.parse(answer);
      if (accepted.kind === "add") answered.onAccepted(accepted);
      if (accepted.kind === "hold") holds.put(hold_id);
      if (accepted.kind === "spend") spends.put(transaction_id);
      if (accepted.kind === "reserve") reservations.put(id);
    },
  };
}

/** IDs from responses. Most are used once. */
function idList(random: Random) {
  const ids: string[] = [];
  return {
    get isEmpty() {
      return ids.length === 0;
    },
    put(id: string) {
      ids.push(id);
      if (ids.length > idsMax) ids.shift();
    },
    take(): string {
      const index = random.between(0, ids.length - 1);
      return (random.chance(0.8) ? ids.splice(index, 1)[0] : ids[index]) ?? "";
    },
  };
}

interface BatchResponse {
  readonly results: readonly { readonly status: number; readonly body: unknown; readonly replayed?: boolean }[];
}

function splitBatch(answer: string) {
  const { results } = JSON.parse(answer) as BatchResponse;
  return results.map(({ status, body, replayed = false }) => ({ status, body: JSON.stringify(body), replayed }));
}
