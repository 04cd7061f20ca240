/** `todoke doctor`: shows what doctor/ has found, to a person or as JSON. */
import type { Command } from "../command.ts";
import type { Finding } from "../doctor/finding.ts";
import { examine } from "../doctor/index.ts";
import { plural, type Style, say, styled } from "../output.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "check every engine and setting, and say what to do about each fault",
  usage: "todoke doctor [--json]",
  details: `
Looks at Node, the database, the event bus, Redis, the OpenID issuer, the keys between services, the ports and the
disk, and changes nothing. It examines what the environment names (DATABASE_URL, EVENT_BUS_URL, REDIS_URL, OIDC_ISSUER,
GATEWAY_BFF_TOKEN_KEY, …), or else the \`todoke dev\` that runs in this folder.

  ✓ fine     ! works, but weakens a promise or soon will not     ✗ does not work

The exit code is 1 when there is a ✗.`,
  switches: { json: "print the findings as JSON" },
  takesNames: false,
  async run({ env, services, switches }) {
    const findings = await examine(env, services);
    const faults = findings.filter((finding) => finding.level === "fault").length;
    if (switches.has("json")) say(JSON.stringify({ healthy: faults === 0, findings }, null, 2));
    else show(findings);
    return faults > 0 ? 1 : 0;
  },
};

const marks: Record<Finding["level"], readonly [Style, string]> = {
  ok: ["green", "✓"],
  warning: ["yellow", "!"],
  fault: ["red", "✗"],
};

function show(findings: readonly Finding[]): void {
  const width = Math.max(...findings.map((finding) => finding.of.length));
  for (const { level, of, says, todo } of findings) {
    say(`${styled(...marks[level])} ${of.padEnd(width)}   ${says}`);
    if (todo) say(`  ${" ".repeat(width)}   → ${todo}`);
  }
  const count = (level: Finding["level"]) => findings.filter((finding) => finding.level === level).length;
  say(`\n${plural(count("fault"), "fault")}, ${plural(count("warning"), "warning")}, ${count("ok")} fine`);
}
