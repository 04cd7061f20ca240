/**
 * `todoke dead redrive`: retries dead letters. Named ids are redriven at once; --all redrives only with --yes, and prints a
 * preview without it.
 */
import type { RedriveRequest } from "@todoke/kernel/claims";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { parseOperator, parseReason } from "../operator.ts";
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
  const json = switches.has("json");
  const request =
    switches.has("all") && !switches.has("yes")
      ? undefined
      : { by: parseOperator(values), reason: parseReason(values) };
  const text = await withDeadLetters({ entry, env, table: values.table }, async (dead) => {
    if (!request) return formatPreview(await eachPage(dead, parseFilter(values)), { service: entry.name, json });
    const done = ids.length > 0 ? redriveIds(dead, ids, request) : redriveAll(dead, parseFilter(values), request);
    return formatRedrive(await done, json);
  });
  print(text);
  return 0;
}

function rejectContradictions({ switches, values }: Invocation, ids: readonly string[]): void {
  const all = switches.has("all");
  if (all && ids.length > 0) throw new UsageError("Give ids or --all, not both.");
  if (!all && ids.length === 0) throw new UsageError("Name the ids to redrive, or use --all.");
  if (ids.length > idsMax) throw new UsageError(`At most ${idsMax} ids at once.`);
  const filtered = values.table !== undefined || Object.keys(parseFilter(values)).length > 0;
  if (!all && (filtered || switches.has("yes"))) throw new UsageError("--table, --type, --error and --yes need --all.");
}

/** All ids are found before any is redriven, so a mistyped id changes nothing. */
async function redriveIds(
  dead: ServiceDeadLetters,
  ids: readonly string[],
  request: RedriveRequest,
): Promise<RedriveResult> {
  const found = [];
  for (const id of new Set(ids.map((text) => text.toLowerCase()))) found.push(await findDeadLetter(dead, id));
  const redriven: DeadLetterId[] = [];
  for (const each of dead.tables) {
    const own = found.filter(({ table }) => table === each).map(({ row }) => row.id);
    if (own.length > 0) redriven.push(...(await redriveRows(dead, each, { ids: own, request })));
  }
  const named = found.map(({ table: { name }, row: { id } }) => ({ table: name, id }));
  const left = named.filter(({ id }) => !redriven.some((each) => each.id === id));
  return { redriven, left, more: false };
}

async function redriveAll(
  dead: ServiceDeadLetters,
  filter: ReturnType<typeof parseFilter>,
  request: RedriveRequest,
): Promise<RedriveResult> {
  const redriven: DeadLetterId[] = [];
  const { more } = await eachPage(dead, filter, async (table, rows) => {
    redriven.push(...(await redriveRows(dead, table, { ids: rows.map(({ id }) => id), request })));
  });
  return { redriven, left: [], more };
}

interface RowsToRedrive {
  readonly ids: readonly string[];
  readonly request: RedriveRequest;
}

async function redriveRows(
  { db, wake }: ServiceDeadLetters,
  table: DeadLetters,
  { ids, request }: RowsToRedrive,
): Promise<DeadLetterId[]> {
  const redriven = await table.redrive(db, ids, request);
  if (redriven.length > 0) await wake(table);
  return redriven.map((id) => ({ table: table.name, id }));
}
