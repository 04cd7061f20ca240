/**
 * `todoke dead redrive`: retries dead letters. Named ids are redriven at once; --all redrives only with --yes, and prints a
 * preview without it.
 */
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { parseOperatorReason } from "../operator.ts";
import { print } from "../output.ts";
import { eachPage } from "./each-page.ts";
import { type DeadLetterId, formatPreview, formatRedrive, type RedriveResult } from "./format-redrive.ts";
import { parseFilter } from "./list.ts";
import { findDeadLetter, parseServiceAndIds } from "./show.ts";
import { type ServiceDeadLetters, withDeadLetters } from "./with-dead-letters.ts";

const idsMax = 1_000;

export async function redrive(call: Invocation): Promise<number> {
  const { env, values, switches } = call;
  const { entry, ids } = parseServiceAndIds(call.services, call.args);
  rejectContradictions(call, ids);
  const [filter, json] = [parseFilter(values), switches.has("json")];
  const request = switches.has("all") && !switches.has("yes") ? undefined : parseOperatorReason(values);
  const text = await withDeadLetters({ entry, env, table: values.table }, async (dead) => {
    if (!request) return formatPreview(await eachPage(dead, filter), { service: entry.name, json });
    const redriveRows: RedriveRows = async (table, rows) => {
      const ids = rows.map(({ id }) => id);
      const redriven = await table.redrive(dead.db, ids, request);
      if (redriven.length > 0) await dead.wake(table.name);
      return redriven.map((id) => ({ table: table.name, id }));
    };
    if (ids.length > 0) return formatRedrive(await redriveIds(dead, ids, redriveRows), json);
    const redriven: DeadLetterId[] = [];
    const { more } = await eachPage(dead, filter, async (table, rows) => {
      redriven.push(...(await redriveRows(table, rows)));
    });
    return formatRedrive({ redriven, left: [], more }, json);
  });
  print(text);
  return 0;
}

type RedriveRows = (table: DeadLetters, rows: readonly { readonly id: string }[]) => Promise<DeadLetterId[]>;

function rejectContradictions({ switches, values }: Invocation, ids: readonly string[]): void {
  const all = switches.has("all");
  if (all && ids.length > 0) throw new UsageError("Give ids or --all, not both.");
  if (!all && ids.length === 0) throw new UsageError("Name the ids to redrive, or use --all.");
  if (ids.length > idsMax) throw new UsageError(`At most ${idsMax} ids at once.`);
  const filtered = values.table !== undefined || Object.keys(parseFilter(values)).length > 0;
  if (!all && (filtered || switches.has("yes"))) throw new UsageError("--table, --type, --error and --yes need --all.");
}

/** All ids are found before any is redriven, so a mistyped id changes nothing. */
async function redriveIds(dead: ServiceDeadLetters, ids: readonly string[], redriveRows: RedriveRows) {
  const found = [];
  for (const id of new Set(ids.map((text) => text.toLowerCase()))) found.push(await findDeadLetter(dead, id));
  const redriven: DeadLetterId[] = [];
  for (const each of dead.tables) {
    const rows = found.filter(({ table }) => table === each).map(({ row }) => row);
    if (rows.length > 0) redriven.push(...(await redriveRows(each, rows)));
  }
  const named = found.map(({ table: { name }, row: { id } }) => ({ table: name, id }));
  const left = named.filter(({ id }) => !redriven.some((each) => each.id === id));
  return { redriven, left, more: false } satisfies RedriveResult;
}
