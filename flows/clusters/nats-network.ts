/**
 * `npm run interop -- clusters-network`: as nats.ts, with each server on a host of its own, which is cut off, slowed and made to lose
 * packets while its processes go on. Run it in a network namespace: `unshare --net node flows/clusters/nats-network.ts`.
 */
import { openNatsBus } from "@todoke/bus-nats";
import { startEngine } from "@todoke/engines";
import { elapsed, type Faults, faultMs, runBusFaults, startGrants } from "./faults.ts";
import { startNatsServers } from "./nats-servers.ts";
import { type Host, openHosts } from "./network.ts";

await using network = await openHosts(3);
await using postgres = await startEngine("postgres");
await using servers = await startNatsServers(network.hosts);
const { members, busUrl, leader } = servers;
console.log(
  `nats-server ${members[0]?.engine.version}, three servers on hosts of their own; PostgreSQL ${postgres.version}`,
);
const openBus = (name: string) => openNatsBus({ url: busUrl, name });
await using run = await startGrants({ databaseUrl: postgres.url, openBus });

const leadingHost = async () => (await leader()).host as Host;

const faults: Faults = {
  "no fault": () => elapsed(faultMs),
  "leader cut off for 20 s, both sides alive": async () => {
    const host = await leadingHost();
    await host.cutOff();
    await elapsed(2 * faultMs).finally(() => host.heal());
  },
  "leader's host at 256 kbit/s for 10 s": async () => {
    const host = await leadingHost();
    await host.slow(256);
    await elapsed(faultMs).finally(() => host.unslow());
  },
  "leader's host loses 10 % of the packets for 10 s": async () => {
    const host = await leadingHost();
    await host.lose(0.1);
    await elapsed(faultMs).finally(() => host.loseNone());
  },
  "two of three cut off for 10 s": async () => {
    await Promise.all(network.hosts.slice(1).map((host) => host.cutOff()));
    await elapsed(faultMs).finally(() => Promise.all(network.hosts.slice(1).map((host) => host.heal())));
  },
};
await runBusFaults(faults, run);
