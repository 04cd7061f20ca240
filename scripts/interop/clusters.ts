/** Todoke on clusters of servers, while their members are killed, frozen, cut off and restarted. `flows/clusters` has the runs. */
import { globSync } from "node:fs";
import { canInstallWithApt, findExecutable, installWithApt } from "@todoke/engines";
import { run } from "../test/command.ts";
import { failed, passed } from "../test/result.ts";
import { MissingProgram, type Peer, report } from "./peer.ts";

interface Cluster {
  /** In flows/clusters. */
  readonly program: string;
  readonly args?: readonly string[];
  /** What runs it. */
  readonly prefix?: readonly string[];
  readonly debianPackage: string;
  isInstalled(): boolean;
}

const onPath = (name: string) => () => findExecutable(name) !== undefined;

const runCluster =
  ({ program, args = [], prefix = [], debianPackage, isInstalled }: Cluster): Peer =>
  async (signal) => {
    if (!isInstalled() && canInstallWithApt()) await installWithApt(debianPackage, report);
    if (!isInstalled()) throw new MissingProgram(`On Debian: apt-get install ${debianPackage}`);
    return (await run([...prefix, "node", `flows/clusters/${program}`, ...args], { signal })) === 0 ? passed : failed;
  };

const postgres: Cluster = {
  program: "postgres.ts",
  debianPackage: "postgresql",
  isInstalled: () => globSync("/usr/lib/postgresql/*/bin/pg_basebackup").length > 0,
};

const redis: Cluster = {
  program: "redis.ts",
  debianPackage: "redis-server",
  isInstalled: onPath("redis-server"),
};

export const clusters = {
  "clusters-nats": runCluster({
    program: "nats.ts",
    debianPackage: "nats-server",
    isInstalled: onPath("nats-server"),
  }),
  /** Hosts of their own: network namespaces within one. */
  "clusters-network": runCluster({
    program: "nats-network.ts",
    prefix: ["unshare", "--net"],
    debianPackage: "nats-server",
    isInstalled: onPath("nats-server"),
  }),
  "clusters-postgres": runCluster(postgres),
  "clusters-postgres-asynchronous": runCluster({ ...postgres, args: ["asynchronous"] }),
  "clusters-rabbitmq": runCluster({
    program: "rabbitmq.ts",
    debianPackage: "rabbitmq-server",
    isInstalled: onPath("rabbitmq-server"),
  }),
  "clusters-redis": runCluster(redis),
  "clusters-redis-with-replicas": runCluster({ ...redis, args: ["with-replicas"] }),
};
