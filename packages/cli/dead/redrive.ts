/**
 * `todoke dead redrive`: lets rows be tried again. Those that are named at once; all of a kind only with --yes, and
 * without it an account of what that would be.
 */
import type { RedriveRequest } from "@todoke/kernel/claims";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { askerOf } from "../asker.ts";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { say } from "../output.ts";
import { accountOf, type Done, type Named, outlookOf } from "./account.ts";
import { everyPage } from "./every-page.ts";
import { filterOf } from "./list.ts";
import { type DeadOf, onDead } from "./open.ts";
import { find, serviceAndIds } from "./show.ts";

const idsMax = 1_000;

export async function redrive(call: Call): Promise<number> {
  const { env, values, switches } = call;
  const { entry, ids } = serviceAndIds(call.services, call.names);
  refuseContradictions(call, ids);
  const json = switches.has("json");
  const request = switches.has("all") && !switches.has("yes") ? undefined : requestOf(values);
  const text = await onDead({ entry, env, table: values.table }, async (dead) => {
    if (!request) return outlookOf(await everyPage(dead, filterOf(values)), { service: entry.name, json });
    const done = ids.length > 0 ? redriveIds(dead, ids, request) : redriveAll(dead, filterOf(values), request);
    return accountOf(await done, json);
  });
  say(text);
  return 0;
}

function refuseContradictions({ switches, values }: Call, ids: readonly string[]): void {
  const all = switches.has("all");
  if (all && ids.length > 0) throw new Misused("Either ids or --all, not both.");
  if (!all && ids.length === 0) throw new Misused("Say which: ids, or --all.");
  if (ids.length > idsMax) throw new Misused(`At most ${idsMax} ids at once.`);
  const filtered = values.table !== undefined || Object.keys(filterOf(values)).length > 0;
  if (!all && (filtered || switches.has("yes")))
    throw new Misused("--table, --type, --error and --yes go with --all only.");
}

function requestOf(values: Call["values"]): RedriveRequest {
  const { reason = "" } = values;
  if (!reason.trim() || reason.length > 500)
    throw new Misused("Say why it can succeed now: --reason with 1 to 500 characters.");
  return { by: askerOf(values), reason };
}

/** All are found before any is redriven: a slip of the pen changes nothing. */
async function redriveIds(dead: DeadOf, ids: readonly string[], request: RedriveRequest): Promise<Done> {
  const found = [];
  for (const id of new Set(ids.map((text) => text.toLowerCase()))) found.push(await find(dead, id));
  const redriven: Named[] = [];
  for (const each of dead.tables) {
    const own = found.filter(({ table }) => table === each).map(({ row }) => row.id);
    if (own.length > 0) redriven.push(...(await redriveRows(dead, each, { ids: own, request })));
  }
  const named = found.map(({ table: { name }, row: { id } }) => ({ table: name, id }));
  const left = named.filter(({ id }) => !redriven.some((each) => each.id === id));
  return { redriven, left, more: false };
}

async function redriveAll(dead: DeadOf, filter: ReturnType<typeof filterOf>, request: RedriveRequest): Promise<Done> {
  const redriven: Named[] = [];
  const { more } = await everyPage(dead, filter, async (table, rows) => {
    redriven.push(...(await redriveRows(dead, table, { ids: rows.map(({ id }) => id), request })));
  });
  return { redriven, left: [], more };
}

interface Wish {
  readonly ids: readonly string[];
  readonly request: RedriveRequest;
}

async function redriveRows({ db, wake }: DeadOf, table: DeadLetters, { ids, request }: Wish): Promise<Named[]> {
  const redriven = await table.redrive(db, ids, request);
  // The poll finds them as well; a wake-up that fails is no reason to say that the redrive has.
  if (redriven.length > 0) await wake(table).catch(() => {});
  return redriven.map((id) => ({ table: table.name, id }));
}
