/** pg-transactional-outbox with its polling listener and parallel messages. */
import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { PoolClient } from "pg";
import {
  DatabaseSetup,
  getDisabledLogger,
  initializeMessageStorage,
  initializePollingMessageListener,
  type PollingListenerConfig,
  type TransactionalMessage,
} from "pg-transactional-outbox";
import { countRows, defaultPool, schemaBytes } from "./database.ts";
import type { Contender, Job, Peer, RoundSetup } from "./peer.ts";

const schema = "pto";
const table = "outbox";
const nextMessagesName = "next_outbox_messages";
const setup = {
  outboxOrInbox: "outbox",
  database: "",
  schema,
  table,
  listenerRole: "current_user",
  nextMessagesName,
} as const;

const toMessage = (job: Job): TransactionalMessage => ({
  id: randomUUIDv7(),
  aggregateType: "bench",
  aggregateId: `k${job.n}`,
  messageType: "made",
  concurrency: "parallel",
  payload: job,
});

async function open({ postgresUrl }: RoundSetup): Promise<Peer> {
  const db = defaultPool(postgresUrl, 8);
  const { rowCount } = await db.query("select from pg_tables where schemaname = $1 and tablename = $2", [
    schema,
    table,
  ]);
  if (!rowCount) {
    const { dropAndCreateTable, createPollingFunction, setupPollingIndexes } = DatabaseSetup;
    for (const sql of [dropAndCreateTable, createPollingFunction, setupPollingIndexes]) await db.query(sql(setup));
  }
  const connection = { connectionString: postgresUrl, max: 20 };
  const config: PollingListenerConfig = {
    outboxOrInbox: "outbox",
    dbListenerConfig: connection,
    dbHandlerConfig: connection,
    settings: {
      dbSchema: schema,
      dbTable: table,
      nextMessagesFunctionSchema: schema,
      nextMessagesFunctionName: nextMessagesName,
      nextMessagesBatchSize: 20,
      nextMessagesPollingIntervalInMs: 50,
      enableMaxAttemptsProtection: true,
      enablePoisonousMessageProtection: true,
    },
  };
  const logger = getDisabledLogger();
  const store = initializeMessageStorage(config, logger);
  return {
    enqueue: (tx, job) => store(toMessage(job), tx as PoolClient),
    async send(job) {
      const client = await db.connect();
      await store(toMessage(job), client).finally(() => client.release());
    },
    fill: (count) =>
      db.query(
        `insert into ${schema}.${table} (id, aggregate_type, aggregate_id, message_type, concurrency, payload)
         select uuidv7(), 'bench', 'k' || i, 'made', 'parallel', jsonb_build_object('n', i, 'sentAt', 0)
           from generate_series(1, $1::int) i`,
        [count],
      ),
    async work(handle) {
      const [stop] = initializePollingMessageListener(
        config,
        { handle: async (message) => handle(message.payload as Job) },
        logger,
      );
      return {
        async [Symbol.asyncDispose]() {
          // It closes its pools while messages run; their errors are unhandled rejections.
          process.on("unhandledRejection", () => {});
          await Promise.race([stop(), sleep(1_000)]);
        },
      };
    },
    countUnfinished: () => countRows(db, `${schema}.${table} where processed_at is null and abandoned_at is null`),
    bytes: () => schemaBytes(db, schema),
    [Symbol.asyncDispose]: () => db.end(),
  };
}

export const pgTransactionalOutbox: Contender = {
  package: "pg-transactional-outbox",
  settings:
    "polling listener, nextMessagesBatchSize 20 with 20 connections, nextMessagesPollingIntervalInMs 50, messages parallel and without a segment; not its replication listener, which needs another wal_level",
  notGuaranteed:
    "each message runs inside a transaction that holds its row lock, which fences it but occupies a connection; order only in segments, which are not used here; no wake-up",
  recovery: { default: "nextMessagesLockInMs 5 s, counted from the claim and not renewed" },
  slow: true,
  open,
};
