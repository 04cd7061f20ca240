/**
 * Grants over HTTP on loopback, by 64 connections, with telemetry off, on, and with every trace sent to a collector: what
 * telling of itself costs a service. Each is a process with a database of its own; they are measured by turns. The
 * processor time that a grant takes in the service is counted too: it holds where other work shares the machine.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openDatabase } from "./databases.ts";
import { crowd } from "./load.ts";
import { type Contender, median, race } from "./measure.ts";
import { nextGrant, startService } from "./pipeline.ts";
import type { Result } from "./report.ts";

const connections = 64;
const requests = 16_000;

export async function telemetryCost(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const collector = started.use(await openSink());
  const processorTimes: number[][] = [];
  const contender = async (name: string, env: Record<string, string>): Promise<Contender> => {
    const database = started.use(await openDatabase(postgresUrl));
    const service = started.use(await startService("entitlement", { DATABASE_URL: database.url, ...env }));
    const grants = () => crowd({ url: service.url, next: nextGrant, connections, requests });
    await grants(); // Warm: the first thousands pay for the compiler.
    const times: number[] = [];
    processorTimes.push(times);
    return {
      name,
      async run() {
        const before = await service.processorMicroseconds();
        const granted = await grants();
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
