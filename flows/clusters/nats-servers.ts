/** Three servers of NATS as a cluster, on this host or each on a host of its own. */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type Engine, type EngineHost, startEngine } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { wait } from "./faults.ts";

export interface Member {
  readonly engine: Engine;
  readonly host: EngineHost;
  /** The name by which the cluster knows it. */
  readonly name: string;
}

export interface NatsServers extends AsyncDisposable {
  readonly members: readonly Member[];
  /** As services get it, with three copies of every stream. */
  readonly busUrl: string;
  /** The server that leads the stream of grants. */
  leader(): Promise<Member>;
}

const loopback: EngineHost = { address: "127.0.0.1", enter: [] };

export async function startNatsServers(
  hosts: readonly EngineHost[] = [loopback, loopback, loopback],
): Promise<NatsServers> {
  await using parts = new AsyncDisposableStack();
  const ports = await Promise.all(hosts.map(freePort));
  const routes = hosts.map(({ address }, n) => `nats-route://${address}:${ports[n]}`).join(", ");
  const members = await Promise.all(
    hosts.map(async (host, n): Promise<Member> => {
      const cluster = `{ name: todoke, host: "${host.address}", port: ${ports[n]}, routes: [${routes}] }`;
      const engine = parts.use(await startEngine("nats", { host, settings: { cluster } }));
      const connection = await connect({ servers: engine.url });
      const name = connection.info?.server_name ?? "";
      await connection.close();
      return { engine, host, name };
    }),
  );
  const urls = members.map(({ engine }) => engine.url);
  // The servers elect a leader of their metadata before they can store anything.
  await until("the cluster can store streams", () => isReady(urls), wait);
  const all = parts.move();
  return {
    members,
    busUrl: `nats://${urls.map((url) => new URL(url).host).join()}?replicas=3`,
    leader: async () => {
      const name = await readLeader(urls);
      const found = members.find((member) => member.name === name);
      if (!found) throw new Error(`no server is called ${name}`);
      return found;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function isReady(servers: string[]): Promise<boolean> {
  const connection = await connect({ servers });
  try {
    const { streams } = await jetstreamManager(connection);
    await streams.add({ name: "PROBE", subjects: ["probe"], num_replicas: 3 });
    return await streams.delete("PROBE");
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

async function readLeader(servers: string[]): Promise<string | undefined> {
  const connection = await connect({ servers });
  try {
    return (await (await jetstreamManager(connection)).streams.info("ENTITLEMENT")).cluster?.leader;
  } finally {
    await connection.close();
  }
}
