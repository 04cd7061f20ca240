import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { violationsText } from "./report.ts";
import { run } from "./run.ts";
import { busKinds } from "./settings.ts";

/**
 * Long enough for a dozen faults, which these seeds spread over processes, wires and engines. Other tests run beside this
 * one, so no time limits are checked, the load lasts until enough commands are answered, and the wait for quiet is long.
 */
const short = {
  forMs: 15_000,
  answeredMin: 100,
  faultsPerMinute: 48,
  rate: 60,
  timed: false,
  quietMs: 480_000,
};
const seeds = { postgres: "250", nats: "100", rabbitmq: "216" };
/** Every service on one bus or two, so that a run has few processes. */
const servicesOn = {
  postgres: ["entitlement", "points", "notification"],
  nats: ["orders", "matchmaking", "notification"],
  rabbitmq: ["account", "gateway-bff", "entitlement", "notification"],
};

test.each(busKinds)(
  "%s: under kills, cuts, pauses and outages nothing is lost, doubled, unexpected or out of order",
  { timeout: 900_000 },
  async (bus) => {
    const folder = await mkdtemp(join(tmpdir(), "todoke-chaos-"));
    const result = await run({ ...short, bus, services: servicesOn[bus], seed: seeds[bus], folder: join(folder, bus) });
    expect(violationsText(result)).toBe("Nothing was broken.");
    // About nine hundred commands and ten faults, and fewer on a busy machine.
    expect(result.counts.answered).toBeGreaterThanOrEqual(short.answeredMin);
    expect(result.evidence.facts.faults.filter(({ happened }) => happened).length).toBeGreaterThan(3);
    await rm(folder, { recursive: true });
  },
);
