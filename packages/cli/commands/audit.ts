/** `todoke audit`: checks the rules of services on their live databases. The parts are in audit/. */

import { auditBrokerBooks } from "../audit/books.ts";
import { auditEvents } from "../audit/events.ts";
import { formatAudit, type NamedAudit } from "../audit/format.ts";
import { auditService } from "../audit/own-rules.ts";
import { auditSessions } from "../audit/sessions.ts";
import type { Command } from "../command.ts";
import { print } from "../output.ts";
import { selectServices } from "../select-services.ts";
import { requireDatabaseUrls } from "../service-database.ts";

export const audit: Command = {
  name: "audit",
  summary: "check on live databases that everything balances",
  usage: "todoke audit [service…] [--json]",
  details: `
Compares the tables of the named services, or of all that are configured, rule by rule: every change has its audit row
and its event, every published event was taken by each of its consumers, every notification ends or is due, nobody is
in two matches, no suspended user keeps a session, balances are the sums of their transactions, and orders agree with
their ledger, history and fills, and with the books of the broker, which is asked now (ORDERS_BROKER and its settings).

Each service is read in one statement on one snapshot, so concurrent changes cannot cause false findings. It changes
nothing and blocks nothing. A million rows take some seconds. It needs only the databases (DATABASE_URL or
<SERVICE>_DATABASE_URL, else the database of the \`todoke dev\` in this folder), and the bus of an event that seems to
be missing. The services run it too, once in <SERVICE>_AUDIT_HOURS. The exit code is 1 if a rule is violated,
and --json prints every finding.`,
  switches: { json: "print JSON" },
  takesArgs: true,
  async run({ env, services, args, switches }) {
    const selected = selectServices(services, args, env);
    await requireDatabaseUrls(selected, env);
    const configured = selectServices(services, [], env);
    const audits: NamedAudit[] = [];
    for (const entry of selected) audits.push({ of: entry.name, ...(await auditService(entry, env)) });
    const books = await auditBrokerBooks(selected, env);
    if (books) audits.push({ of: "broker", ...books });
    const events = await auditEvents({ producers: selected, configured, env });
    if (Object.values(events.checked).some((count) => count > 0)) audits.push({ of: "events", ...events });
    const sessions = await auditSessions({ selected, configured, env });
    if (sessions) audits.push({ of: "sessions", ...sessions });
    const violations = audits.reduce((sum, { findings }) => sum + findings.length, 0);
    if (switches.has("json")) print(JSON.stringify({ violations, audits }, null, 2));
    else print(audits.map(formatAudit).join("\n\n"));
    return violations > 0 ? 1 : 0;
  },
};
