/**
 * The broker simulator as a process:
 *
 *   node services/orders/simulator/main.ts --file book.jsonl [--port 0] [--secret …] [--no-dedupe] [--window-ms 30000]
 *     [--slow-ms 1000] [--faults <seed>] [--clock-ahead-ms 0]
 *
 * Prints its address when it listens. With a seed, one order in three has a fault; the same seed repeats the same faults.
 */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { type Fault, faultPlan, faults } from "../brokers/faults.ts";
import { openBook } from "./book.ts";
import { simulator } from "./server.ts";

const { values } = parseArgs({
  options: {
    file: { type: "string" },
    port: { type: "string", default: "0" },
    secret: { type: "string", default: "simulator" },
    "no-dedupe": { type: "boolean", default: false },
    "window-ms": { type: "string", default: "30000" },
    "slow-ms": { type: "string", default: "1000" },
    "clock-ahead-ms": { type: "string", default: "0" },
    faults: { type: "string" },
  },
});
if (values.file === undefined) {
  console.error("--file is required: the file of the order book, such as book.jsonl.");
  process.exit(2);
}

// Rejections are left out: they are not failures.
const chances = new Map<Fault, number>(faults.filter((fault) => fault !== "reject").map((fault) => [fault, 1 / 27]));
const server = simulator({
  book: openBook(values.file),
  secret: values.secret,
  dedupes: !values["no-dedupe"],
  windowMs: Number(values["window-ms"]),
  slowMs: Number(values["slow-ms"]),
  clockAheadMs: Number(values["clock-ahead-ms"]),
  plan: values.faults === undefined ? faultPlan() : faultPlan(chances, Number(values.faults)),
});
server.listen(Number(values.port), "127.0.0.1");
await once(server, "listening");
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
