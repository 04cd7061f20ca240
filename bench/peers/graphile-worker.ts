/** graphile-worker, with the settings of its own performance page: local queue, batched completion. */
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { bytesOf, countOf, plainPool } from "./database.ts";
import type { Contender, Job, Peer, Site } from "./peer.ts";

const task = "bench";
const silent = new Logger(() => () => {});

async function open({ postgresUrl }: Site): Promise<Peer> {
  const preset = {
    worker: {
      connectionString: postgresUrl,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger: silent,
    },
  };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  const db = plainPool(postgresUrl, 8);
  const addJob = (job: Job) => ({
    name: "add job",
    text: `select from graphile_worker.add_job('${task}', $1::json)`,
    values: [JSON.stringify(job)],
  });
  return {
    enqueue: (tx, job) => tx.query(addJob(job)),
    send: (job) => db.query(addJob(job)),
    fill: (count) =>
      db.query(
        `select count(*) from graphile_worker.add_jobs(array(
           select json_populate_record(null::graphile_worker.job_spec, json_build_object(
                    'identifier', '${task}', 'payload', json_build_object('n', i, 'sentAt', 0)))
             from generate_series(1, $1::int) i))`,
        [count],
      ),
    async work(handle) {
      const listening = Promise.withResolvers<void>();
      const runner = await run({
        preset,
        noHandleSignals: true,
        parsedCronItems: [],
        taskList: { [task]: (payload) => handle(payload as Job) },
      });
      runner.events.on("pool:listen:success", () => listening.resolve());
      await Promise.race([listening.promise, new Promise((resolve) => setTimeout(resolve, 500))]);
      return { [Symbol.asyncDispose]: () => runner.stop() };
    },
    left: () => countOf(db, "graphile_worker._private_jobs"),
    bytes: () => bytesOf(db, "graphile_worker"),
    async [Symbol.asyncDispose]() {
      await db.end();
      await utils.release();
    },
  };
}

export const graphileWorker: Contender = {
  package: "graphile-worker",
  settings: "concurrentJobs 24, maxPoolSize 25, localQueue.size 500, completeJobBatchDelay 0 (its performance page)",
  lacks:
    "no fence: whoever ends a job deletes it, also after another worker was given it; no lease that is renewed; no inbox; order only in named queues, which are not used here; a finished job leaves no trace",
  recovery: { never: "4 hours, fixed; sooner only when somebody calls forceUnlockWorkers" },
  open,
};
