import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { violationsText } from "./report.ts";
import { run } from "./run.ts";
import { busKinds } from "./settings.ts";

/**
 * Long enough for a dozen faults, which these seeds spread over processes, wires and engines. Other tests run beside this
 * one, so times are not held against the services, and to become quiet they have as long as a busy machine takes.
 */
const short = { forMs: 15_000, faultsPerMinute: 48, rate: 60, timed: false, quietMs: 180_000 };
const seeds = { postgres: "250", nats: "100", rabbitmq: "216" };

test.each(busKinds)(
  "%s: under kills, cuts, pauses and outages nothing is lost, doubled, unexpected or out of order",
  { timeout: 600_000 },
  async (bus) => {
    const folder = await mkdtemp(join(tmpdir(), "todoke-chaos-"));
    const result = await run({ ...short, bus, seed: seeds[bus], folder: join(folder, bus) });
    expect(violationsText(result)).toBe("Nothing was broken.");
    // Some nine hundred commands and ten faults, and on a slow machine fewer: what matters is that there were any.
    expect(result.counts.answered).toBeGreaterThan(50);
    expect(result.evidence.facts.faults.filter(({ happened }) => happened).length).toBeGreaterThan(3);
    await rm(folder, { recursive: true });
  },
);
