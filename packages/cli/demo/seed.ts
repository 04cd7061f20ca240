/**
 * The example data of `todoke demo`: players, items, points, matches, orders and dead letters, so that the console has something to
 * show. Every command has a fixed key, and a file in the data folder says when they were begun.
 */
import { createClient } from "@todoke/client";
import type { User } from "@todoke/identity";
import { readDataFile, writeDataFile } from "../data-folder.ts";
import { devKey } from "../dev-env.ts";
import { CommandFailed } from "../errors.ts";
import { resolveExampleUser } from "../example-user.ts";
import type { Env } from "../services.ts";

const file = "demo.json";

interface Seeding {
  readonly startedAt: number;
  readonly isDone: boolean;
}

/** Services remember keys for 24 hours. Later the commands would be carried out again, so a seeding that was killed is left as it is. */
const resumedWithinMs = 20 * 60 * 60 * 1_000;

/** Whether the example data is missing, or a part of it. */
export async function beginSeeding(): Promise<boolean> {
  const seeding = await readDataFile<Seeding>(file);
  if (!seeding) await writeDataFile(file, { startedAt: Date.now(), isDone: false } satisfies Seeding);
  return !seeding || (!seeding.isDone && Date.now() - seeding.startedAt < resumedWithinMs);
}

export const endSeeding = (): Promise<void> =>
  writeDataFile(file, { startedAt: Date.now(), isDone: true } satisfies Seeding);

const names = ["carol", "dave", "erin", "frank"] as const;
type Name = (typeof names)[number];

/** They cannot log in: the provider does not know them. */
const toUser = (name: Name): User => ({
  username: name,
  password: "",
  name: `${name[0]?.toUpperCase()}${name.slice(1)} Example`,
  email: `${name}@example.com`,
  emailVerified: true,
  locale: "en",
});

/** The webhook of the demo refuses news of it for as long as the example data is created. */
export const refusedItem = "season-pass";
export const refusedCount = 2;

/** `env` is the environment of the services, which run. */
export async function seed(env: Env): Promise<void> {
  const { ENTITLEMENT_URL = "", POINTS_URL = "", MATCHMAKING_URL = "", ORDERS_URL = "" } = env;
  const services = {
    entitlement: ENTITLEMENT_URL,
    points: POINTS_URL,
    matchmaking: MATCHMAKING_URL,
    orders: ORDERS_URL,
  };
  const todoke = createClient({ services, apiKey: devKey });
  const [carol, dave, erin, frank] = await createPlayers(env);

  const grant = (user_id: string, stock_keeping_unit: string) => {
    const key = `demo:${user_id}:${stock_keeping_unit}`;
    return todoke.entitlements.grant({ user_id, stock_keeping_unit, reason: "purchase", purchase_id: key }, { key });
  };
  const add = (user_id: string, point_amount: bigint, reason: string) =>
    todoke.points.add({ user_id, point_amount, reason }, { key: `demo:${user_id}:points` });
  await Promise.all([
    ...["fire-sword", "ice-shield", "golden-crown"].map((item) => grant(carol, item)),
    ...[erin, frank].map((user) => grant(user, refusedItem)),
    grant(dave, "ice-shield"),
    add(carol, 6_000n, "tournament"),
    add(dave, 450n, "arena: won"),
    add(erin, 80n, "daily bonus"),
    add(frank, 9_007_199_254_740_993n, "exact to the last point"),
  ]);
  await todoke.points.spend({ user_id: carol, point_amount: 5_500n, reason: "items" }, { key: `demo:${carol}:spent` });
  const reserved = { user_id: dave, point_amount: 1_000n, execute_at: "2099-01-01T00:00:00Z", reason: "season reward" };
  await todoke.points.reserve(reserved, { key: `demo:${dave}:season` });

  for (const user_id of [carol, dave, erin, frank])
    await todoke.matchmaking.joinQueueForUser({ user_id, mode: "duel" }, { key: `demo:${user_id}:duel` });

  const order = { side: "BUY", price: null, requested_at: "2026-01-31T09:30:00Z", user_id: carol } as const;
  for (const [index, [instrument, qty]] of [
    ["BTC-USD", "0.5"],
    ["ETH-USD", "4"],
    ["USD-JPY", "2000"],
  ].entries()) {
    const key = `demo-${index + 1}`;
    await todoke.orders.accept({ ...order, order_id: key, instrument: instrument ?? "", qty: qty ?? "" }, { key });
  }
}

async function createPlayers(env: Env): Promise<readonly [string, string, string, string]> {
  const create = async (name: Name) => {
    const user = await resolveExampleUser(env, env.OIDC_ISSUER ?? "", toUser(name));
    if (!user) throw new CommandFailed("The example data of the demo was not created: account does not answer.");
    return user.userId;
  };
  return await Promise.all([create("carol"), create("dave"), create("erin"), create("frank")]);
}
