/** Reads and validates the failpoint actions and the planted defect of a process from its environment. */

const actions = ["kill", "stop", "delay", "throw"] as const;

export interface FailpointOrder {
  readonly name: string;
  readonly action: (typeof actions)[number];
  /** Acts at the n-th hit in the life of the process, or at every hit. Default: 1. */
  readonly hit: number | "every";
  /** Delay before the action; other work of the process continues. */
  readonly ms: number;
}

/** From JSON: `[{"name":"relay.published","action":"kill","hit":3}]`. */
export function readOrders(json: string | undefined): readonly FailpointOrder[] {
  if (!json) return [];
  const given: unknown = JSON.parse(json);
  if (!Array.isArray(given)) throw new Error("CHAOS_FAILPOINTS should be a JSON array of {name, action, hit, ms}");
  return given.map((order) => checked({ hit: 1, ms: 0, ...order }));
}

function checked(order: FailpointOrder): FailpointOrder {
  const { name, action, hit, ms } = order;
  const isRight =
    actions.includes(action) &&
    (hit === "every" || (Number.isInteger(hit) && hit >= 1)) &&
    Number.isFinite(ms) &&
    ms >= 0 &&
    ms <= 600_000;
  if (isRight) return order;
  throw new Error(
    `CHAOS_FAILPOINTS: ${JSON.stringify(order)} cannot be done: action is one of ${actions.join(", ")}, ` +
      `hit counts from 1 or is "every", and ms goes up to 600000 (at ${name})`,
  );
}

/** The entries that are named; an unknown name is an error that lists the known ones. */
export function named<Entry extends { readonly name: string }>(
  all: readonly Entry[],
  names: readonly string[],
  what: string,
): readonly Entry[] {
  return names.map((name) => {
    const entry = all.find((each) => each.name === name);
    if (entry) return entry;
    throw new Error(`${name} is not the name of a ${what}. There are: ${all.map((each) => each.name).join(", ")}`);
  });
}
