/** The tests of the NATS adapter, its conformance suite included, on the newest nats-server. */
import { delimiter, join } from "node:path";
import { startEngine } from "@todoke/engines";
import type { Result } from "../test/result.ts";
import { runTests } from "../test/vitest.ts";
import { cacheFolder, findProgram, outputOf, report } from "./peer.ts";

const advice = "Install Go, which builds the newest nats-server.";

export async function nats(signal: AbortSignal): Promise<Result> {
  const folder = await installServer(signal);
  // Tests that kill the server start their own: they find this one first.
  process.env.PATH = [folder, process.env.PATH].join(delimiter);
  await using engine = await startEngine("nats");
  report(`the tests of packages/bus-nats, on nats-server ${engine.version} with JetStream`);
  return await runTests({ args: ["packages/bus-nats"], env: { TEST_NATS_URL: engine.url }, signal });
}

async function installServer(signal: AbortSignal): Promise<string> {
  const go = findProgram("go", advice);
  const folder = cacheFolder("nats");
  report("building the newest nats-server with Go (a minute at first)");
  await outputOf([go, "install", "github.com/nats-io/nats-server/v2@latest"], { signal, env: { GOBIN: folder } });
  report((await outputOf([join(folder, "nats-server"), "--version"], { signal })).trim());
  return folder;
}
