/**
 * `npm run interop -- clusters-redis`: players, two matchmaking processes and notifications on a primary of Redis, two replicas and
 * three Sentinels. The primary is killed, frozen, and cut off from the others while services still reach it, with
 * `min-replicas-to-write 0`; with the argument `with-replicas` it is cut off with 1. It exits with 1 if a match was lost or doubled, or a ticket has no end or two.
 */
import { startEngine } from "@todoke/engines";
import { openMatchmakingOn } from "../matchmaking.ts";
import { elapsed, faultMs, formatSeconds, watchPauses } from "./faults.ts";
import { startRedisGroup } from "./redis-group.ts";

await using postgres = await startEngine("postgres");
process.env.TEST_POSTGRES_URL = postgres.url;

const rows: string[] = [];
let violations = 0;

async function runWith(replicasMin: number, isInjected: (fault: string) => boolean): Promise<void> {
  await using setup = await openMatchmakingOn(() => startRedisGroup(replicasMin));
  const { playerLoad, redis } = setup;
  if (!redis) throw new Error("there is no Redis");
  console.log(`Redis ${redis.version}, two replicas, three Sentinels, min-replicas-to-write ${replicasMin}`);
  await setup.start();

  const faults: Readonly<Record<string, () => Promise<void>>> = {
    "no fault": () => elapsed(faultMs),
    "primary killed": async () => {
      const primary = await redis.primary();
      await primary.kill();
      await redis.failedOver(primary);
      await primary.start();
      await redis.followsAgain(primary);
    },
    "primary frozen for 15 s": async () => {
      const primary = await redis.primary();
      process.kill(primary.pid as number, "SIGSTOP");
      await elapsed(1.5 * faultMs).finally(() => process.kill(primary.pid as number, "SIGCONT"));
      await redis.followsAgain(primary);
    },
    "primary cut off for 15 s, services still reach it": async () => {
      const primary = await redis.primary();
      await redis.cutOff(primary);
      await redis.failedOver(primary);
      await setup.start(); // A process that uses the new primary, while the others use the old one.
      await elapsed(1.5 * faultMs);
      await redis.heal(primary);
      await redis.followsAgain(primary);
    },
  };
  for (const [name, inject] of Object.entries(faults).filter(([fault]) => isInjected(fault))) {
    const before = playerLoad.responses.length;
    playerLoad.start();
    await playerLoad.waitForProgress();
    const answered = watchPauses(async () => playerLoad.responses.length);
    await inject();
    await playerLoad.waitForProgress();
    const pause = formatSeconds(await answered());
    const found = await setup.violations({ redisLostData: name !== "no fault" });
    for (const violation of found) console.log(violation);
    violations += found.length;
    const tickets = new Map(playerLoad.responses.slice(before).map((each) => [each.ticketId, each]));
    const lost = playerLoad.responses.slice(before).filter(({ reason }) => reason === "lost");
    const lostTickets = new Set(lost.map(({ ticketId }) => ticketId)).size;
    rows.push(`| ${replicasMin} | ${name} | ${pause} | ${tickets.size} | ${lostTickets} | ${found.length} |`);
    console.log(rows.at(-1));
  }
}

// For the other faults it makes no difference.
if (process.argv[2] === "with-replicas") await runWith(1, (fault) => fault.includes("cut off"));
else await runWith(0, () => true);
console.log(`| min-replicas-to-write | fault | longest pause of answers, s | tickets | of these lost | violations |
|---|---|---|---|---|---|
${rows.join("\n")}`);
process.exitCode = violations > 0 ? 1 : 0;
