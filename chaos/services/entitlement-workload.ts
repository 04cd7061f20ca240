/**
 * Commands of the entitlement service's clients: grants and revokes of few users and products, so that versions grow and order
 * matters; single, twice at once and in batches; reused keys; grants that expire within seconds.
 */
import { callers } from "../callers.ts";
import type { Command } from "../history.ts";
import type { Random } from "../random.ts";
import { answeredKeys } from "./answered-keys.ts";
import type { WorkItem, Workload } from "./index.ts";

const [users, products] = [40, 3];
const batchMax = 12;

export function entitlementWorkload(random: Random): Workload {
  const client = random.between(0, 2 ** 32).toString(36);
  let commandCount = 0;
  const answered = answeredKeys(random);

  function command(more: Partial<Command> = {}): Command {
    const id = `${client}-${++commandCount}`;
    const kind = more.kind ?? (random.chance(0.6) ? "grant" : "revoke");
    return {
      service: "entitlement",
      caller: random.pick(callers),
      key: `key-${id}`,
      path: `/v1/entitlements/${kind}s`,
      ...more,
      id,
      kind,
      body: {
        user_id: `u_${random.between(1, users)}`,
        stock_keeping_unit: `item${random.between(1, products)}`,
        reason: kind === "grant" ? "purchase" : "refund",
        ...more.body,
        purchase_id: id,
      },
    };
  }

  const single = (): WorkItem => {
    const one = command();
    const { user_id, stock_keeping_unit } = one.body;
    const path = `/v1/users/${user_id}/entitlements/${stock_keeping_unit}`;
    return {
      commands: [one],
      by: "one",
      impatient: random.chance(0.1),
      ...(random.chance(0.1) && { readBack: { path, version: (answer) => JSON.parse(answer).version } }),
    };
  };
  const twice = (): WorkItem => ({ commands: [command()], by: "twice" });
  const batch = (): WorkItem => {
    const commands = Array.from({ length: random.between(2, batchMax) }, () => command({ caller: callers[0] }));
    return { commands, by: "batch", batch: toBatch(commands) };
  };
  const expiring = (): WorkItem => {
    const expires_at = new Date(Date.now() + random.between(1_000, 5_000)).toISOString();
    return { commands: [command({ kind: "grant", body: { expires_at } })], by: "one" };
  };
  /** The same key is independent for another caller or another route. */
  const sameKeyElsewhere = (): WorkItem => {
    const first = answered.take();
    const other = random.chance(0.5)
      ? { caller: callers.find((caller) => caller !== first.caller) ?? first.caller, kind: first.kind }
      : { caller: first.caller, kind: first.kind === "grant" ? "revoke" : "grant" };
    return { commands: [command({ ...other, key: first.key })], by: "one" };
  };
  /** The same caller, route and key with another body is a conflict without effect. */
  const sameKeyOtherBody = (): WorkItem => {
    const { caller, kind, key, path } = answered.take();
    return { commands: [command({ caller, kind, key, path, wants: "refusal" })], by: "one" };
  };
  const malformed = (): WorkItem => ({
    commands: [command({ body: { reason: "" }, wants: "refusal" })],
    by: "one",
  });

  const mix = [
    { weight: 58, make: single },
    { weight: 8, make: twice },
    { weight: 20, make: batch },
    { weight: 4, make: expiring },
    { weight: 4, make: sameKeyElsewhere },
    { weight: 4, make: sameKeyOtherBody },
    { weight: 2, make: malformed },
  ];
  return {
    next: () => (answered.isEmpty ? single() : random.weighted(mix).make()),
    onAccepted: answered.onAccepted,
  };
}

interface BatchResponse {
  readonly results: readonly { readonly status: number; readonly body: unknown; readonly replayed?: boolean }[];
}

function toBatch(commands: readonly Command[]): NonNullable<WorkItem["batch"]> {
  const items = commands.map(({ kind, key, body }) => ({ action: kind, idempotency_key: key, ...body }));
  return {
    path: "/v1/entitlements/batch",
    body: { items },
    split(answer) {
      const { results } = JSON.parse(answer) as BatchResponse;
      return results.map(({ status, body, replayed = false }) => ({ status, body: JSON.stringify(body), replayed }));
    },
  };
}
