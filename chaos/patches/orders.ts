/** What a process is told to do at its failpoints, and which defect it is to have: read from its environment and checked. */

const actions = ["kill", "stop", "delay", "throw"] as const;

export interface FailpointOrder {
  readonly name: string;
  readonly action: (typeof actions)[number];
  /** When the point is reached for the n-th time in the life of the process, or every time; the first unless told otherwise. */
  readonly hit: number | "every";
  /** How long a delay takes; anything else is done after this time, and what runs beside it goes on meanwhile. */
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
