/**
 * `todoke dead redrive` retries dead letters, `todoke dead discard` deletes them. Named ids are changed at once; --all changes rows
 * only with --yes, and prints a preview without it.
 */
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { parseOperatorReason } from "../operator.ts";
import { print } from "../output.ts";
import { eachPage } from "./each-page.ts";
import { type Action, type ChangeResult, type DeadLetterId, formatPreview, formatResult } from "./format-redrive.ts";
import { parseFilter } from "./list.ts";
import { findDeadLetter, parseServiceAndIds } from "./show.ts";
import { type ServiceDeadLetters, withDeadLetters } from "./with-dead-letters.ts";

const idsMax = 1_000;

export const redrive = (call: Invocation): Promise<number> => change(call, "redrive");

export const discard = (call: Invocation): Promise<number> => change(call, "discard");

async function change(call: Invocation, action: Action): Promise<number> {
  const { env, values, switches } = call;
  const { entry, ids } = parseServiceAndIds(call.services, call.args);
  rejectContradictions(call, { ids, action });
  const [filter, json] = [parseFilter(values), switches.has("json")];
  const request = switches.has("all") && !switches.has("yes") ? undefined : parseOperatorReason(values);
  const text = await withDeadLetters({ entry, env, table: values.table }, async (dead) => {
    if (!request) return formatPreview(await eachPage(dead, filter), { service: entry.name, action, json });
    const changeRows: ChangeRows = async (table, rows) => {
      const ids = rows.map(({ id }) => id);
      const changed = await table[action](dead.db, ids, request);
      if (changed.length > 0) await dead.wake(table.name);
      return changed.map((id) => ({ table: table.name, id }));
    };
    if (ids.length > 0) return formatResult(await changeIds(dead, ids, changeRows), { action, json });
    const changed: DeadLetterId[] = [];
    const { more } = await eachPage(dead, filter, async (table, rows) => {
      changed.push(...(await changeRows(table, rows)));
    });
    return formatResult({ changed, left: [], more }, { action, json });
  });
  print(text);
  return 0;
}

type ChangeRows = (table: DeadLetters, rows: readonly { readonly id: string }[]) => Promise<DeadLetterId[]>;

function rejectContradictions(
  { switches, values }: Invocation,
  { ids, action }: { readonly ids: readonly string[]; readonly action: Action },
): void {
  const all = switches.has("all");
  if (all && ids.length > 0) throw new UsageError("Give ids or --all, not both.");
  if (!all && ids.length === 0) throw new UsageError(`Name the ids to ${action}, or use --all.`);
  if (ids.length > idsMax) throw new UsageError(`At most ${idsMax} ids at once.`);
  const filtered = values.table !== undefined || Object.keys(parseFilter(values)).length > 0;
  if (!all && (filtered || switches.has("yes")))
    throw new UsageError("--table, --type, --error, --user and --yes need --all.");
}

/** All ids are found before any is changed, so a mistyped id changes nothing. */
async function changeIds(dead: ServiceDeadLetters, ids: readonly string[], changeRows: ChangeRows) {
  const found = [];
  for (const id of new Set(ids.map((text) => text.toLowerCase()))) found.push(await findDeadLetter(dead, id));
  const changed: DeadLetterId[] = [];
  for (const each of dead.tables) {
    const rows = found.filter(({ table }) => table === each).map(({ row }) => row);
    if (rows.length > 0) changed.push(...(await changeRows(each, rows)));
  }
  const named = found.map(({ table: { name }, row: { id } }) => ({ table: name, id }));
  const left = named.filter(({ id }) => !changed.some((each) => each.id === id));
  return { changed, left, more: false } satisfies ChangeResult;
}
