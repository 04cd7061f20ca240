/**
 * `npm run interop`: Todoke with software that we did not write, in the newest version that can be had.
 *
 * `npm run interop -- keycloak nats` runs only these. It needs the network and programs that `npm test` does not need: Java and
 * Maven, Go, Python. docs/interop.md has what is checked and the last result. The last line is `N passed, N failed`.
 */
import { client } from "./interop/client.ts";
import { clusters } from "./interop/clusters.ts";
import { keycloak } from "./interop/keycloak.ts";
import { kubernetes } from "./interop/kubernetes.ts";
import { nats } from "./interop/nats.ts";
import { MissingProgram, type Peer } from "./interop/peer.ts";
import { prometheus } from "./interop/prometheus.ts";
import { schemathesis } from "./interop/schemathesis.ts";
import { failed, lastLine, type Result, sum } from "./test/result.ts";

const peers: Readonly<Record<string, Peer>> = {
  keycloak,
  nats,
  schemathesis,
  prometheus,
  kubernetes,
  client,
  ...clusters,
};

const names = process.argv.slice(2);
/** `clusters` is each of the clusters. */
const isNamed = (peer: string, name: string) => peer === name || peer.startsWith(`${name}-`);
const unknown = names.filter((name) => !Object.keys(peers).some((peer) => isNamed(peer, name)));
if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(", ")}. Choose from: ${Object.keys(peers).join(", ")}.`);
  process.exit(2);
}

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => interrupted.abort(name));
const { signal } = interrupted;

async function runPeer(name: string, peer: Peer): Promise<Result> {
  console.log(`\n▸ ${name}`);
  const start = performance.now();
  const result = await peer(signal).catch((error: unknown): Result => {
    if (error instanceof MissingProgram) return { ...failed, notes: [`${name} was not run: ${error.message}`] };
    if (!signal.aborted) console.error(error);
    return failed;
  });
  const seconds = ((performance.now() - start) / 1_000).toFixed(0);
  console.log(`${result.failed > 0 ? "✗" : "✓"} ${name}: ${lastLine(result, { ci: true })} (${seconds} s)`);
  return result;
}

const results: Result[] = [];
for (const [name, peer] of Object.entries(peers)) {
  if (signal.aborted || (names.length > 0 && !names.some((each) => isNamed(name, each)))) continue;
  results.push(await runPeer(name, peer));
}
const total = sum(results);
for (const note of total.notes) console.log(note);
if (signal.aborted) console.log(`Interrupted by ${signal.reason}: not everything was run.`);
// A skipped part counts as failed, because it was not excluded.
console.log(lastLine(total, { ci: true }));
process.exit(signal.aborted || total.failed > 0 || total.skipped > 0 ? 1 : 0);
