/**
 * `npm run interop -- clusters-nats`: grants and notifications on a NATS cluster of three servers with three copies of every stream, while
 * servers are killed, frozen and restarted. It prints how long notifications paused, and exits with 1 if a grant was lost, doubled
 * or refused. docs/guides/clusters.md has the last result.
 */
import { openNatsBus } from "@todoke/bus-nats";
import { startEngine } from "@todoke/engines";
import { brokerFaults, runBusFaults, startGrants } from "./faults.ts";
import { startNatsServers } from "./nats-servers.ts";

await using postgres = await startEngine("postgres");
await using servers = await startNatsServers();
const { members, busUrl, leader } = servers;
console.log(`nats-server ${members[0]?.engine.version}, three servers, three copies; PostgreSQL ${postgres.version}`);
const openBus = (name: string) => openNatsBus({ url: busUrl, name });
await using run = await startGrants({ databaseUrl: postgres.url, openBus });

await runBusFaults(
  brokerFaults(
    members.map(({ engine }) => engine),
    async () => (await leader()).engine,
  ),
  run,
);
