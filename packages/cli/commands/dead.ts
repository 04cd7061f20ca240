/** `todoke dead`: lists, shows and redrives dead letters. It needs only the database. The subcommands are in dead/. */
import { inboxDlqTable } from "@todoke/kernel/inbox";
import { outboxTable } from "@todoke/kernel/outbox";
import type { Command } from "../command.ts";
import { list } from "../dead/list.ts";
import { discard, redrive } from "../dead/redrive.ts";
import { show } from "../dead/show.ts";
import { runSubcommand, type Subcommand } from "../subcommands.ts";

const filters = ["table", "type", "error", "user"];

const subcommands: Record<"list" | "show" | "redrive" | "discard", Subcommand> = {
  list: { run: list, options: [...filters, "limit", "after", "json"] },
  show: { run: show, options: ["json"] },
  redrive: { run: redrive, options: [...filters, "all", "yes", "reason", "by", "json"] },
  discard: { run: discard, options: [...filters, "all", "yes", "reason", "by", "json"] },
};

export const dead: Command = {
  name: "dead",
  summary: "list, show, redrive and discard dead letters",
  usage: "todoke dead list [service…] | show <service> <id> | redrive|discard <service> <id…|--all> --reason <text>",
  details: `
  list      list dead letters, oldest first; of all services if none is named
  show      show one dead letter: payload, attempts, last error and earlier redrives
  redrive   retry dead letters under the same id, with all attempts again
  discard   delete dead letters: they are never tried again; a copy is kept, and \`show\` prints it

It needs only the database (DATABASE_URL or <SERVICE>_DATABASE_URL, else the database of the \`todoke dev\` in this
folder), so it works while the service is down. Running services are woken.

  ${outboxTable.padEnd(15)}  FAILED: cannot be published; later events of the same aggregate wait
  ${inboxDlqTable.padEnd(15)}  DEAD: a consumer cannot handle it
  notifications    FAILED: cannot be sent

Fix the cause before you redrive. A redrive or discard records who ran it and why. It is idempotent: rows that are no
longer dead are skipped. --all changes every row that matches --table, --type, --error and --user; without --yes it
only prints what it would change.

A discarded event of ${outboxTable} never reaches its consumers, and the events behind it are published.
A discarded event of ${inboxDlqTable} never takes effect there. A discarded notification is never sent, and leaves
the inbox of its user.`,
  values: {
    table: ["<name>", "only this table"],
    type: ["<event type>", "only this event type"],
    error: ["<text>", "only rows whose last error contains this text"],
    user: ["<id>", "only rows about this user"],
    limit: ["<n>", "list: maximum number of rows per table (default 50)"],
    after: ["<cursor>", "list: start after this cursor; the output ends with the next one"],
    reason: ["<text>", "redrive, discard: why; recorded"],
    by: ["<name>", "redrive, discard: your name, recorded (default: the current user)"],
  },
  switches: {
    all: "redrive, discard: every row that matches the filters",
    yes: "with --all: change them, not only print them",
    json: "print JSON",
  },
  takesArgs: true,
  run: (call) => runSubcommand(subcommands, call),
};
