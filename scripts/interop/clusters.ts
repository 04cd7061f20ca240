/** Grants and notifications on a cluster of NATS servers, while its members are killed, frozen and restarted. */
import { run } from "../test/command.ts";
import { failed, passed } from "../test/result.ts";
import { findProgram, type Peer } from "./peer.ts";

export const clusters: Peer = async (signal) => {
  findProgram("nats-server", "On Debian: apt-get install nats-server");
  return (await run(["node", "flows/nats-cluster.ts"], { signal })) === 0 ? passed : failed;
};
