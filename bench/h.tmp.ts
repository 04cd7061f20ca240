/**
 * Grants over HTTP on loopback, by 64 connections, with telemetry off, on, and with every trace sent to a collector: what
 * telling of itself costs a service. Each is a process with a database of its own; they are measured by turns. The
 * processor time that a grant takes in the service is counted too: it holds where other work shares the machine.
 */
import { fork } from "node:child_process";
import { hash, randomUUIDv7 } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { migrate } from "@todoke/entitlement";
import { openDb } from "@todoke/kernel/db";
import type { Result } from "./kernel.ts";
import { type Contender, median, race } from "./measure.ts";

const connections = 64;
const perConnection = 100;
const key = "tdk_bench";

export async function telemetryCost(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const collector = started.use(await openSink());
  const processorTimes: number[][] = [];
  const contender = async (name: string, env: Record<string, string>): Promise<Contender> => {
    const service = started.use(await startService(postgresUrl, env));
    await grants(service.url); // Warm: the first thousands pay for the compiler.
    const times: number[] = [];
    processorTimes.push(times);
    return {
      name,
      async run() {
        const before = await service.processorMicroseconds();
        const granted = await grants(service.url);
        times.push(((await service.processorMicroseconds()) - before) / granted);
        return granted;
      },
    };
  };
  const figures = await race("grants over HTTP", [
    await contender("telemetry off", { OTEL_SDK_DISABLED: "true" }),
    await contender("metrics and trace ids", {}),
    await contender("and every trace to a collector", { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }),
  ]);
  const [off = 0, on = 0, all = 0] = figures.map(({ perSecond }) => perSecond);
  const [offTime = 0, onTime = 0, allTime = 0] = processorTimes.map(median);
  return {
    title: `grants over HTTP by ${connections} connections, with and without telemetry`,
    figures,
    ratios: {
      "grants per second, telemetry on / off": ratio(on, off),
      "every trace exported / off": ratio(all, off),
      "grants per second of processor time, telemetry on / off": ratio(offTime, onTime),
      "the same, every trace exported / off": ratio(offTime, allTime),
    },
  };
}

const ratio = (over: number, under: number) => Math.round((over / under) * 1_000) / 1_000;

let databases = 0;

export async function startService(postgresUrl: string, more: Record<string, string>) {
  const name = `bench_http_${process.pid}_${databases++}`;
  const admin = openDb({ url: postgresUrl, poolMax: 1 });
  await admin.query(`create database ${name}`);
  const database = Object.assign(new URL(postgresUrl), { pathname: `/${name}` });
  const env = {
    ...more,
    DATABASE_URL: database.href,
    ENTITLEMENT_PORT: "0",
    LOG_LEVEL: "warn",
    TODOKE_API_KEYS: `bench=entitlements:write=${hash("sha256", key, "hex")}`,
  };
  await migrate(env, { dryRun: false });
  const child = fork(new URL("./http-service.ts", import.meta.url), { env, execArgv: [] });
  const [url] = (await once(child, "message")) as [string];
  return {
    url,
    async processorMicroseconds(): Promise<number> {
      child.send("processor time");
      return ((await once(child, "message")) as [number])[0];
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await once(child, "exit");
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}

/** A collector that takes all and keeps nothing. */
async function openSink() {
  const server = createServer((request, response) => request.resume().once("end", () => response.end("{}")));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export async function grants(url: string): Promise<number> {
  const { hostname, port } = new URL(url);
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(Number(port), hostname).setNoDelay(true);
      for (let n = 0; n < perConnection; n++) await grant(socket);
      socket.destroy();
    }),
  );
  return connections * perConnection;
}

/** By hand: a client library would take as much of the processor as the service. */
async function grant(socket: Socket): Promise<void> {
  const id = randomUUIDv7();
  const body = `{"user_id":"u_${id}","stock_keeping_unit":"item1","reason":"purchase","purchase_id":"p_1"}`;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let answer = "";
  const read = (bytes: Buffer) => {
    answer += bytes.toString("latin1");
    if (!isWhole(answer)) return;
    if (answer.startsWith("HTTP/1.1 201 ")) resolve();
    else reject(new Error(`not granted: ${answer}`));
  };
  socket.on("data", read);
  socket.write(
    `POST /v1/entitlements/grants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\nIdempotency-Key: ${id}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await promise.finally(() => socket.off("data", read));
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  const length = Number(/content-length: (\d+)/i.exec(answer)?.[1]);
  return end >= 0 && answer.length >= end + 4 + length;
}
