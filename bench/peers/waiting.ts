/** The roles that are about time, not about amounts: how long a job waits for its worker, and how long for another one. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, machineMs, noJob } from "./peer.ts";
import { option, type Role } from "./role.ts";

/** A job that was begun, and when, by the machine's clock. */
export interface Begun extends Job {
  readonly begunAt: number;
}

/** Hears of jobs that another process sends; answers with each that it began. */
export const receive: Role = async ({ peer, options, say }) => {
  const jobs = option(options, "jobs");
  const begun: Begun[] = [];
  const all = Promise.withResolvers<void>();
  await using _worker = await peer.work(({ n, sentAt }) => {
    if (n > 0) begun.push({ n, sentAt, begunAt: machineMs() }); // Number 0 is for warming up.
    if (begun.length === jobs) all.resolve();
  });
  say("ready");
  await all.promise;
  return begun;
};

/** The jobs go out one by one with a pause between, so that each finds everybody at rest. Answers when each was stored. */
export const sendAtRest: Role = async ({ peer, options }) => {
  const storedAt: number[] = [];
  for (let i = 0; i < 20; i++) {
    await peer.send(noJob);
    await sleep(10);
  }
  for (let n = 1; n <= option(options, "jobs"); n++) {
    await sleep(option(options, "pauseMs") * (0.5 + Math.random()));
    await peer.send({ n, sentAt: machineMs() });
    storedAt[n] = machineMs();
  }
  return storedAt;
};

/** So many jobs a second, whether or not those before are stored. */
export const sendAtPace: Role = async ({ peer, options }) => {
  const jobs = option(options, "jobs");
  const perSecond = option(options, "perSecond");
  const sending = new Set<Promise<unknown>>();
  const startedAt = performance.now();
  for (let n = 0; n < jobs; ) {
    const due = Math.min(jobs, ((performance.now() - startedAt) / 1_000) * perSecond);
    for (; n < due; n++) {
      const sent: Promise<unknown> = peer.send({ n: n + 1, sentAt: machineMs() }).then(() => sending.delete(sent));
      sending.add(sent);
    }
    await sleep(1);
  }
  await Promise.all(sending);
};

/** Sender and worker in one process, which ours can make use of. */
export const pickUpHere: Role = async (play) => {
  const received = Promise.withResolvers<void>();
  const begun = receive({ ...play, say: () => received.resolve() });
  await received.promise;
  await sendAtRest(play);
  return await begun;
};

/** Ends some jobs, as one that has run for a while; then takes the rest and never ends them: it is going to be killed. */
export const hold: Role = async ({ peer, options, say }) => {
  const ended = 40;
  const warm = Promise.withResolvers<void>();
  let begun = 0;
  await peer.fill(ended);
  await peer.work(() => {
    begun++;
    if (begun === ended) warm.resolve();
    if (begun === ended + option(options, "jobs")) say("holding");
    if (begun > ended) return new Promise(() => {});
  });
  await warm.promise;
  while ((await peer.left()) > 0) await sleep(20);
  await peer.fill(option(options, "jobs"));
  await new Promise(() => {});
};

/** Gets what the dead one held; answers when it had it all, by the machine's clock. */
export const rescue: Role = async ({ peer, options, say }) => {
  const seen = new Set<number>();
  const all = Promise.withResolvers<void>();
  await using _worker = await peer.work(({ n }) => {
    if (seen.add(n).size === options.jobs) all.resolve();
  });
  say("ready");
  await all.promise;
  return machineMs();
};
