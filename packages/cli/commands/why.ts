/** `todoke why`: explains what happened to an id, from the databases of all services. The services need not run. */
import { explainId, findEntries, type WhySource } from "@todoke/service/why";
import type { Command } from "../command.ts";
import { UsageError } from "../errors.ts";
import { print } from "../output.ts";
import { loadAll, selectServices } from "../select-services.ts";
import { requireDatabaseUrls, withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { busSources } from "../why/bus-source.ts";
import { formatExplanation } from "../why/format.ts";

export const why: Command = {
  name: "why",
  summary: "explain what happened to an id, or what blocks it, over all services",
  usage: "todoke why <id> [--json]",
  details: `
The id can be that of a user, event, notification, order, reservation, point transaction, hold, ticket, match or
session, an e-mail address, a trace id, an idempotency key, or the number of a dead event.

Prints one sentence with its cure, then every step: request, outbox, bus, consumer, notification and sending, each with
its time, attempt, process and trace. Related ids are followed, from an order to its events and their
notifications.

It needs only the databases (DATABASE_URL or <SERVICE>_DATABASE_URL, else the database of the \`todoke dev\` in this
folder), reads indexes only, and changes nothing. --json prints what GET /v1/admin/why/{id} of the gateway returns.`,
  switches: { json: "print JSON" },
  takesArgs: true,
  async run({ env, services, args, switches }) {
    const [id, ...others] = args;
    if (id === undefined || others.length > 0) throw new UsageError("Name one id.");
    if (id.length > 320) throw new UsageError("An id has at most 320 characters.");
    const entries = selectServices(services, [], env);
    await requireDatabaseUrls(entries, env);
    const absent = services.filter((entry) => !entries.includes(entry)).map(({ name }) => name);
    const loaded = await loadAll(entries);
    const sources = [
      ...entries.map((entry) => sourceOf(entry, env)),
      ...(await busSources(
        loaded.map(({ service }) => service),
        env,
      )),
    ];
    const explanation = await explainId(id, sources, absent);
    print(switches.has("json") ? JSON.stringify(explanation, null, 2) : formatExplanation(explanation));
    return 0;
  },
};

const statementTimeoutMs = 2_000;

const sourceOf = (entry: ServiceEntry, env: Env): WhySource => ({
  service: entry.name,
  async find(question) {
    const { why: lookups = [] } = await entry.load();
    const questions = "links" in question ? question.links : [question];
    return withDatabase({ entry, env, purpose: "todoke why", statementTimeoutMs }, async ({ db }) => {
      const found = [];
      for (const each of questions) found.push(await findEntries(db, lookups, each));
      return { entries: found.flatMap(({ entries }) => entries), failed: found.flatMap(({ failed }) => failed) };
    });
  },
});
