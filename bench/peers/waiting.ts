/** Roles that measure time: how long a job waits for a worker, and for another worker after a crash. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Job, machineMs, warmUpJob } from "./peer.ts";
import { option, type Role } from "./role.ts";

/** A job that a worker has started; `startedAt` is in milliseconds of `machineMs`. */
export interface StartedJob extends Job {
  readonly startedAt: number;
}

/** Works on jobs that another process sends; returns them. */
export const receive: Role = async ({ peer, options, report }) => {
  const jobs = option(options, "jobs");
  const startedJobs: StartedJob[] = [];
  const all = Promise.withResolvers<void>();
  await using _worker = await peer.work(({ n, sentAt }) => {
    if (n > 0) startedJobs.push({ n, sentAt, startedAt: machineMs() }); // Number 0 is the warm-up.
    if (startedJobs.length === jobs) all.resolve();
  });
  report("ready");
  await all.promise;
  return startedJobs;
};

/** Sends jobs one by one with a pause between, so that all processes are idle. Returns when each was stored. */
export const sendWhenIdle: Role = async ({ peer, options }) => {
  const storedAt: number[] = [];
  for (let i = 0; i < 20; i++) {
    await peer.send(warmUpJob);
    await sleep(10);
  }
  for (let n = 1; n <= option(options, "jobs"); n++) {
    await sleep(option(options, "pauseMs") * (0.5 + Math.random()));
    await peer.send({ n, sentAt: machineMs() });
    storedAt[n] = machineMs();
  }
  return storedAt;
};

/** Sends `perSecond` jobs, whether or not earlier ones are stored. */
export const sendAtRate: Role = async ({ peer, options }) => {
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

/** Sender and worker in one process, where Todoke wakes its worker directly. */
export const pickUpInProcess: Role = async (context) => {
  const workerReady = Promise.withResolvers<void>();
  const startedJobs = receive({ ...context, report: () => workerReady.resolve() });
  await workerReady.promise;
  await sendWhenIdle(context);
  return await startedJobs;
};

/** Finishes 40 warm-up jobs, then holds all further jobs until it is killed. */
export const holdJobs: Role = async ({ peer, options, report }) => {
  const warmUpJobs = 40;
  const warm = Promise.withResolvers<void>();
  let startedCount = 0;
  await peer.fill(warmUpJobs);
  await peer.work(() => {
    startedCount++;
    if (startedCount === warmUpJobs) warm.resolve();
    if (startedCount === warmUpJobs + option(options, "jobs")) report("holding");
    if (startedCount > warmUpJobs) return new Promise(() => {});
  });
  await warm.promise;
  while ((await peer.countUnfinished()) > 0) await sleep(20);
  await peer.fill(option(options, "jobs"));
  await new Promise(() => {});
};

/** Takes over the jobs of the killed process; returns the time at which it had all of them. */
export const recoverJobs: Role = async ({ peer, options, report }) => {
  const seen = new Set<number>();
  const all = Promise.withResolvers<void>();
  await using _worker = await peer.work(({ n }) => {
    if (seen.add(n).size === options.jobs) all.resolve();
  });
  report("ready");
  await all.promise;
  return machineMs();
};
