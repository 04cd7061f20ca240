/**
 * The cost of telemetry: grants over HTTP with telemetry off, on, and with every trace exported. Each variant is a process
 * with its own database. CPU time per grant is measured too, because other work on the machine does not distort it.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openDatabase } from "./databases.ts";
import { sendConcurrently } from "./load.ts";
import { type Contender, measureInTurns, median } from "./measure.ts";
import { nextGrant } from "./pipeline.ts";
import type { Result } from "./report.ts";
import { startService } from "./start-service.ts";

const connections = 64;
const requests = 16_000;

export async function telemetryCost(postgresUrl: string): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const collector = started.use(await openCollector());
  const cpuTimes: number[][] = [];
  const contender = async (name: string, env: Record<string, string>): Promise<Contender> => {
    const database = started.use(await openDatabase(postgresUrl));
    const service = started.use(await startService("entitlement", { DATABASE_URL: database.url, ...env }));
    const grants = () => sendConcurrently({ url: service.url, nextRequest: nextGrant, connections, requests });
    await grants(); // Warm-up: the first requests pay for compilation.
    const times: number[] = [];
    cpuTimes.push(times);
    return {
      name,
      async run() {
        const before = await service.cpuMicroseconds();
        const granted = await grants();
        times.push(((await service.cpuMicroseconds()) - before) / granted);
        return granted;
      },
    };
  };
  const figures = await measureInTurns("grants over HTTP", [
    await contender("telemetry off", { OTEL_SDK_DISABLED: "true" }),
    await contender("metrics and trace IDs", {}),
    await contender("metrics and every trace exported", { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }),
  ]);
  const [off = 0, on = 0, all = 0] = figures.map(({ perSecond }) => perSecond);
  const [offTime = 0, onTime = 0, allTime = 0] = cpuTimes.map(median);
  return {
    title: `grants over HTTP by ${connections} connections, with and without telemetry`,
    figures,
    summary: {
      "grants per second, telemetry on / off": ratio(on, off),
      "grants per second, every trace exported / off": ratio(all, off),
      "grants per second of CPU time, telemetry on / off": ratio(offTime, onTime),
      "grants per second of CPU time, every trace exported / off": ratio(offTime, allTime),
    },
  };
}

const ratio = (over: number, under: number) => Math.round((over / under) * 1_000) / 1_000;

/** Accepts and discards all traces. */
async function openCollector() {
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
