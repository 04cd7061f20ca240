/** graphile-worker, with the settings of its own performance page: local queue, batched completion. */
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { countRows, defaultPool, schemaBytes } from "./database.ts";
import type { Contender, Job, Peer, RoundSetup } from "./peer.ts";

const task = "bench";
const silent = new Logger(() => () => {});

async function open({ postgresUrl }: RoundSetup): Promise<Peer> {
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
  const db = defaultPool(postgresUrl, 8);
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
    countUnfinished: () => countRows(db, "graphile_worker._private_jobs"),
    bytes: () => schemaBytes(db, "graphile_worker"),
    async [Symbol.asyncDispose]() {
      await db.end();
      await utils.release();
    },
  };
}

export const graphileWorker: Contender = {
  package: "graphile-worker",
  settings: "concurrentJobs 24, maxPoolSize 25, localQueue.size 500, completeJobBatchDelay 0 (its performance page)",
  notGuaranteed:
    "no fence: a worker deletes its job even after another worker was given it; leases are not renewed; no inbox; order only in named queues, which are not used here; finished jobs are deleted",
  recovery: { never: "4 hours, fixed; sooner only by calling forceUnlockWorkers" },
  open,
};
