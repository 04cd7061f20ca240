/** `todoke doctor`: runs the checks of doctor/ and prints their findings. */
import type { Command } from "../command.ts";
import type { Finding } from "../doctor/finding.ts";
import { runChecks } from "../doctor/index.ts";
import { plural, print, type Style, styled } from "../output.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "check every server and setting, and whether users wait; say how to fix each fault",
  usage: "todoke doctor [service…] [--json]",
  details: `
Checks Node, the database, the event bus, Redis, the OpenID issuer, the keys between services, the ports and the disk.
Counts what users wait for: dead letters, late rows, rows that keep failing, parked aggregates, and events that a
consumer has not processed. It changes nothing. With services named, it checks these and the servers that they use.
It reads the environment (DATABASE_URL, EVENT_BUS_URL, REDIS_URL, OIDC_ISSUER, GATEWAY_BFF_TOKEN_KEY, …), or else
checks the \`todoke dev\` that runs in this folder.

  ✓ ok     ! works, but a guarantee is weakened or it will soon fail     ✗ does not work, or users wait

The exit code is 1 if there is a ✗.`,
  switches: { json: "print the findings as JSON" },
  takesArgs: true,
  async run({ env, services, args, switches }) {
    const findings = await runChecks(env, services, args);
    const faults = findings.filter((finding) => finding.level === "fault").length;
    if (switches.has("json")) print(JSON.stringify({ healthy: faults === 0, findings }, null, 2));
    else printFindings(findings);
    return faults > 0 ? 1 : 0;
  },
};

const marks: Record<Finding["level"], readonly [Style, string]> = {
  ok: ["green", "✓"],
  warning: ["yellow", "!"],
  fault: ["red", "✗"],
};

function printFindings(findings: readonly Finding[]): void {
  const width = Math.max(...findings.map((finding) => finding.of.length));
  for (const { level, of, says, todo } of findings) {
    print(`${styled(...marks[level])} ${of.padEnd(width)}   ${says}`);
    if (todo) print(`  ${" ".repeat(width)}   → ${todo}`);
  }
  const count = (level: Finding["level"]) => findings.filter((finding) => finding.level === level).length;
  print(`\n${plural(count("fault"), "fault")}, ${plural(count("warning"), "warning")}, ${count("ok")} ok`);
}
