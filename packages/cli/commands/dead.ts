/** `todoke dead`: what was given up, seen and tried again by the database alone. The verbs are in dead/. */
import { inboxDlqTable } from "@todoke/kernel/inbox";
import { outboxTable } from "@todoke/kernel/outbox";
import type { Command } from "../command.ts";
import { list } from "../dead/list.ts";
import { redrive } from "../dead/redrive.ts";
import { show } from "../dead/show.ts";
import { runVerb, type Verb } from "../verbs.ts";

const filters = ["table", "type", "error"];

const verbs: Record<"list" | "show" | "redrive", Verb> = {
  list: { run: list, options: [...filters, "limit", "after", "json"] },
  show: { run: show, options: ["json"] },
  redrive: { run: redrive, options: [...filters, "all", "yes", "reason", "by", "json"] },
};

export const dead: Command = {
  name: "dead",
  summary: "list, show and redrive what was given up: events, dead letters, notifications",
  usage: "todoke dead list [service…] | show <service> <id> | redrive <service> <id…|--all> --reason <text>",
  details: `
  list      what was given up, oldest first; of all services when none is named
  show      one of them whole: payload, attempts, last error, and who redrove it
  redrive   lets them be tried again, with all their attempts, under the same id

It needs the database only (DATABASE_URL or <SERVICE>_DATABASE_URL, else that of the \`todoke dev\` in this
folder), so it works while the service is down; a service that runs is woken.

  ${outboxTable.padEnd(15)}  FAILED: could not be published; later events of the same aggregate wait behind it
  ${inboxDlqTable.padEnd(15)}  DEAD: a consumer could not take it
  notifications    FAILED: could not be sent

Remove the cause first. A redrive keeps who asked for it and why. Twice is once: what is not dead any more is
left alone. --all takes what --table, --type and --error leave, and without --yes only says what that is.`,
  values: {
    table: ["<name>", "only rows of this table"],
    type: ["<event type>", "only of this type"],
    error: ["<text>", "only where the last error contains this"],
    limit: ["<n>", "list: at most so many of each table (50)"],
    after: ["<cursor>", "list: the next page, as the end of the last one says"],
    reason: ["<text>", "redrive: why it can succeed now; kept"],
    by: ["<name>", "redrive: who asks for it, if not the user who runs this; kept"],
  },
  switches: {
    all: "redrive: all that the filters leave",
    yes: "redrive --all: do it",
    json: "print JSON",
  },
  takesNames: true,
  run: (call) => runVerb(verbs, call),
};
