import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { violationsText } from "./report.ts";
import { run } from "./run.ts";
import { busKinds } from "./settings.ts";

/** Long enough for a dozen faults, which these seeds spread over processes, wires and engines. */
const short = { forMs: 15_000, faultsPerMinute: 48, rate: 60 };
const seeds = { postgres: "250", nats: "100", rabbitmq: "216" };

test.each(busKinds)(
  "%s: under kills, cuts, pauses and outages nothing is lost, doubled, unexpected or out of order",
  { timeout: 240_000 },
  async (bus) => {
    const folder = await mkdtemp(join(tmpdir(), "todoke-chaos-"));
    // Other tests run beside this one, so times are not held against the services.
    const result = await run({ ...short, bus, seed: seeds[bus], folder: join(folder, bus), timed: false });
    expect(violationsText(result)).toBe("Nothing was broken.");
    expect(result.counts.commands).toBeGreaterThan(300);
    expect(result.evidence.facts.faults.filter(({ happened }) => happened).length).toBeGreaterThan(5);
    await rm(folder, { recursive: true });
  },
);
