/** Todoke on clusters of servers, while their members are killed, frozen, cut off and restarted. `flows/clusters` has the runs. */
import { globSync } from "node:fs";
import { canInstallWithApt, findExecutable, installWithApt } from "@todoke/engines";
import { run } from "../test/command.ts";
import { failed, passed } from "../test/result.ts";
import { MissingProgram, type Peer, report } from "./peer.ts";

interface Cluster {
  /** In flows/clusters. */
  readonly program: string;
  /** What runs it. */
  readonly prefix?: readonly string[];
  readonly debianPackage: string;
  isInstalled(): boolean;
}

const onPath = (name: string) => () => findExecutable(name) !== undefined;

const runCluster =
  ({ program, prefix = [], debianPackage, isInstalled }: Cluster): Peer =>
  async (signal) => {
    if (!isInstalled() && canInstallWithApt()) await installWithApt(debianPackage, report);
    if (!isInstalled()) throw new MissingProgram(`On Debian: apt-get install ${debianPackage}`);
    return (await run([...prefix, "node", `flows/clusters/${program}`], { signal })) === 0 ? passed : failed;
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
  "clusters-postgres": runCluster({
    program: "postgres.ts",
    debianPackage: "postgresql",
    isInstalled: () => globSync("/usr/lib/postgresql/*/bin/pg_basebackup").length > 0,
  }),
  "clusters-rabbitmq": runCluster({
    program: "rabbitmq.ts",
    debianPackage: "rabbitmq-server",
    isInstalled: onPath("rabbitmq-server"),
  }),
  "clusters-redis": runCluster({
    program: "redis.ts",
    debianPackage: "redis-server",
    isInstalled: onPath("redis-server"),
  }),
};
