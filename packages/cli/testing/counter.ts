/** A minimal service for the tests of the command: it counts in the database, and can hang and fail. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type Db, migrate, openDb } from "@todoke/kernel/db";
import type { Env, RunningService, Service, ServiceEntry } from "../services.ts";

export const counter: ServiceEntry = {
  name: "counter",
  port: 8099,
  summary: "counts",
  example: (url) => `curl -X POST ${url}/add`,
  load: async () => service,
};

const open = (env: Env): Db => openDb({ url: env.COUNTER_DATABASE_URL ?? env.DATABASE_URL ?? "", schema: "counter" });

const service: Service = {
  events: { emits: ["account.events", "points.reservations"], consumes: [] },

  configErrors: (env) =>
    env.COUNTER_STEP === undefined || Number(env.COUNTER_STEP) > 0 ? [] : ["COUNTER_STEP is not > 0"],

  async migrate(env, { dryRun }) {
    const db = open(env);
    const sets = [{ name: "counter", dir: new URL("./migrations/", import.meta.url) }];
    return migrate(db, { schema: "counter", sets, dryRun }).finally(() => db.end());
  },

  async start(env): Promise<RunningService> {
    const db = open(env);
    const stopped = Promise.withResolvers<void>();
    const draining = Promise.withResolvers<void>();
    const server = createServer((request, reply) => {
      void handle(request.url ?? "", { reply, db, env, draining: draining.promise, fail: stopped.reject });
    });
    server.listen(Number(env.COUNTER_PORT ?? counter.port), "127.0.0.1");
    await once(server, "listening");
    return {
      url: `http://127.0.0.1:${getPort(server)}`,
      stopped: stopped.promise,
      async [Symbol.asyncDispose]() {
        draining.resolve();
        server.close();
        await once(server, "close");
        await db.end();
        stopped.resolve();
      },
    };
  },
};

const getPort = (server: Server): number => Number(Object(server.address()).port);

interface RequestContext {
  readonly reply: ServerResponse;
  readonly db: Db;
  readonly env: Env;
  readonly draining: Promise<void>;
  readonly fail: (why: Error) => void;
}

async function handle(path: string, { reply, db, env, draining, fail }: RequestContext): Promise<void> {
  reply.setHeader("connection", "close");
  switch (path) {
    case "/add":
      await db.query("insert into counts default values");
      break;
    case "/pid":
      reply.end(String(process.pid));
      return;
    case "/env":
      reply.end(JSON.stringify(env));
      return;
    case "/held": // responds during the drain
      reply.flushHeaders();
      await draining;
      break;
    case "/stuck": // never responds
      reply.flushHeaders();
      return;
    case "/break":
      fail(new Error("the spring broke"));
      break;
  }
  const { rows } = await db.query("select count(*)::int as count from counts");
  reply.end(String(rows[0]?.count));
}
