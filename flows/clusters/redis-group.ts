/** A primary of Redis, two replicas and three Sentinels, and faults of the primary. */
import { type Engine, startEngine, startSentinel } from "@todoke/engines";
import { until } from "@todoke/kernel/testing";
import { operatorClient } from "@todoke/redis/testing";
import { type RedisOperator, readQueues, type TicketStore } from "../matchmaking.ts";
import { wait } from "./faults.ts";

const name = "main";
/** Every server has these users: one of the services, one of replicas and Sentinels. */
const [services, members] = ["todoke:services", "members:members"];
const userLine = (login: string) => `${login.split(":")[0]} on >${login.split(":")[1]} ~* &* +@all`;
const sentinelPassword = "sentinels";

const withUser = (login: string, engine: Engine) => `redis://${login}@${new URL(engine.url).host}`;
const portOf = (engine: Engine) => Number(new URL(engine.url).port);

/** Runs commands with the server's own password, which neither services nor members use. */
async function operate<T>(engine: Engine, run: (operator: RedisOperator) => Promise<T>): Promise<T> {
  const operator = await operatorClient(engine.url);
  try {
    return await run(operator);
  } finally {
    operator.destroy();
  }
}

const replication = (engine: Engine) => operate(engine, async (operator) => String(await operator.info("replication")));

export type RedisGroup = Awaited<ReturnType<typeof startRedisGroup>>;

/** `replicasMin`: how many replicas must be connected for a write. */
export async function startRedisGroup(replicasMin: number): Promise<
  TicketStore & {
    readonly version: string;
    /** The server that Sentinels name. */
    primary(): Promise<Engine>;
    /** Resolves when another server is the primary, as the Sentinels say. */
    failedOver(from: Engine): Promise<void>;
    /** Resolves when the server follows the new primary. */
    followsAgain(engine: Engine): Promise<void>;
    /** Replicas and Sentinels lose the server; services still reach it. */
    cutOff(engine: Engine): Promise<void>;
    heal(engine: Engine): Promise<void>;
  }
> {
  await using parts = new AsyncDisposableStack();
  const settings = {
    user: userLine(services),
    USER: userLine(members),
    masteruser: "members",
    masterauth: "members",
    "repl-diskless-sync-delay": "0",
    "min-replicas-to-write": String(replicasMin),
    "min-replicas-max-lag": "3",
  };
  const first = parts.use(await startEngine("redis", { settings }));
  const follow = { ...settings, replicaof: `127.0.0.1 ${portOf(first)}` };
  const replicas = await Promise.all([1, 2].map(() => startEngine("redis", { settings: follow })));
  for (const replica of replicas) parts.use(replica);
  const servers = [first, ...replicas];
  // Sentinels close the connections of a server that they make a replica.
  const isFollowing = async (engine: Engine) =>
    (await replication(engine).catch(() => "")).includes("master_link_status:up");
  const follows = (engine: Engine) => until("a replica follows the primary", () => isFollowing(engine), wait);
  await Promise.all(replicas.map(follows));

  const watched = { name, url: withUser(members, first), group: { quorum: 2, password: sentinelPassword } };
  const timeouts = { "down-after-milliseconds": "2000", "failover-timeout": "10000" };
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(watched, { settings: timeouts })));
  for (const sentinel of sentinels) parts.use(sentinel);
  const ask = (sentinel: Engine, question: string) =>
    operate(sentinel, async (operator) => (await operator.sendCommand(["SENTINEL", question, name])) as unknown[]);
  const knowsOthers = async (sentinel: Engine) =>
    (await ask(sentinel, "SENTINELS")).length === 2 && (await ask(sentinel, "REPLICAS")).length === 2;
  for (const sentinel of sentinels) await until("a Sentinel knows the others", () => knowsOthers(sentinel), wait);

  const addresses = sentinels.map(({ url }) => new URL(url).host).join();
  const parameters = new URLSearchParams({ sentinel: name, sentinel_password: sentinelPassword });
  async function primaryPort(): Promise<number> {
    const answers = await Promise.all(sentinels.map((sentinel) => ask(sentinel, "GET-MASTER-ADDR-BY-NAME")));
    const ports = answers.map((answer) => Number(answer[1]));
    // The majority: one of them may be late.
    return ports.toSorted((a, b) => a - b)[1] ?? 0;
  }
  async function primary(): Promise<Engine> {
    const port = await primaryPort();
    const found = servers.find((engine) => portOf(engine) === port);
    if (!found) throw new Error(`no server has the port ${port}`);
    return found;
  }
  const all = parts.move();
  return {
    version: first.version,
    url: `redis://${services}@${addresses}/0?${parameters}`,
    primary,
    failedOver: (from) =>
      until("another server is the primary", async () => (await primaryPort()) !== portOf(from), wait),
    followsAgain: follows,
    async cutOff(engine) {
      await operate(engine, async (operator) => {
        await operator.sendCommand(["ACL", "SETUSER", "members", "off"]);
        await operator.sendCommand(["CLIENT", "KILL", "USER", "members"]);
      });
    },
    heal: (engine) =>
      operate(engine, async (operator) => void (await operator.sendCommand(["ACL", "SETUSER", "members", "on"]))),
    ...readQueues(async (read) => operate(await primary(), read)),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
