/** `todoke keys list`: every key with the services that accept it. */
import { holderName, type ListedKey, listKeys } from "@todoke/http";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { formatTime, oneLine, print, table } from "../output.ts";
import { forEachService, parseTarget, printFailures } from "./each-service.ts";

// Per service. With more keys, name a holder.
const shownMax = 1_000;

export async function list(call: Invocation): Promise<number> {
  const [holder, ...more] = call.args;
  if (more.length > 0 || (holder !== undefined && !holderName.test(holder)))
    throw new UsageError("Name one holder, or none for all.");
  const all = call.switches.has("all");
  const of = holder === undefined ? undefined : { holder };
  const { succeeded, failed } = await forEachService(await parseTarget(call), ({ db }) =>
    listKeys(db, { of, all, limit: shownMax + 1 }),
  );
  const keys = mergeKeys(
    succeeded.flatMap(({ service, result }) => result.slice(0, shownMax).map((key) => ({ service, key }))),
  );
  const isTruncated = succeeded.some(({ result }) => result.length > shownMax);
  if (call.switches.has("json")) print(JSON.stringify({ keys, more: isTruncated }, null, 2));
  else if (keys.length > 0 || failed.length === 0) print(formatKeys(keys, { all, isTruncated: isTruncated }));
  return printFailures(failed);
}

interface KeyInServices extends ListedKey {
  readonly services: readonly string[];
}

/** One row per key and state: a key that is revoked in only some services has two rows. */
function mergeKeys(found: readonly { service: string; key: ListedKey }[]): KeyInServices[] {
  const alike = Map.groupBy(found, ({ key: { key_id, holder, scopes, per_second, state } }) =>
    JSON.stringify([key_id, holder, scopes, per_second, state]),
  );
  return [...alike.values()]
    .flatMap((group) => {
      const [first] = group;
      if (!first) return [];
      const last_used_at = latest(group.map(({ key }) => key.last_used_at));
      return [{ ...first.key, last_used_at, services: group.map(({ service }) => service) }];
    })
    .sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
}

/** The timestamps have one format, so they sort as text. */
const latest = (times: readonly (string | null)[]): string | null =>
  times.reduce((a, b) => ((a ?? "") > (b ?? "") ? a : b));

function formatKeys(
  keys: readonly KeyInServices[],
  { all, isTruncated }: { all: boolean; isTruncated: boolean },
): string {
  if (keys.length === 0) return all ? "There are no keys." : "There are no valid keys.";
  // Few keys have a rate of their own.
  const rates = keys.some(({ per_second }) => per_second !== null);
  const rateOf = ({ per_second }: ListedKey) => per_second?.toString() ?? "default";
  const head = [
    ...["key id", "holder", "scopes", "services", "created", "expires", "last used"],
    ...(rates ? ["per second"] : []),
    ...(all ? ["state"] : []),
  ];
  const row = (key: KeyInServices) => [
    ...cells(key),
    ...(rates ? [rateOf(key)] : []),
    ...(all ? [formatState(key)] : []),
  ];
  const lines = table([head, ...keys.map(row)]);
  return isTruncated
    ? `${lines}\nOnly the newest ${shownMax} keys of each service are shown. Name a holder to see the rest.`
    : lines;
}

const cells = ({ key_id, holder, scopes, services, created_at, expires_at, last_used_at }: KeyInServices): string[] => [
  key_id,
  holder,
  scopes.join(","),
  services.join(","),
  formatTime(created_at),
  expires_at ? formatTime(expires_at) : "never",
  last_used_at ? formatTime(last_used_at) : "never",
];

function formatState({ state, revoked_at, revoked_by, revoked_reason }: ListedKey): string {
  if (revoked_at === null) return state;
  const why = revoked_reason ? `: ${oneLine(revoked_reason)}` : "";
  return `${state} ${formatTime(revoked_at)} by ${oneLine(revoked_by ?? "")}${why}`;
}
