/** `todoke keys list`: every key once, with the services that take it. */
import { holderName, type ListedKey, listKeys } from "@todoke/http";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { oneLine, say, table, toSeconds } from "../output.ts";
import { codeOf, onEachService, targetOf } from "./each-service.ts";

// Of each service. Whoever has more keys than that looks for those of one holder.
const shownMax = 1_000;

export async function list(call: Call): Promise<number> {
  const [holder, ...more] = call.names;
  if (more.length > 0 || (holder !== undefined && !holderName.test(holder)))
    throw new Misused("Name one holder, or none for all.");
  const all = call.switches.has("all");
  const of = holder === undefined ? undefined : { holder };
  const { answered, refused } = await onEachService(await targetOf(call), ({ db }) =>
    listKeys(db, { of, all, limit: shownMax + 1 }),
  );
  const keys = merged(
    answered.flatMap(({ service, answer }) => answer.slice(0, shownMax).map((key) => ({ service, key }))),
  );
  const isCut = answered.some(({ answer }) => answer.length > shownMax);
  if (call.switches.has("json")) say(JSON.stringify({ keys, more: isCut }, null, 2));
  else if (keys.length > 0 || refused.length === 0) say(accountOf(keys, { all, isCut }));
  return codeOf(refused);
}

interface KeyOfServices extends ListedKey {
  readonly services: readonly string[];
}

/** A key that differs between services, as one that was revoked in some of them only, has a line for each way it is. */
function merged(found: readonly { service: string; key: ListedKey }[]): KeyOfServices[] {
  const alike = Map.groupBy(found, ({ key: { key_id, holder, scopes, state } }) =>
    JSON.stringify([key_id, holder, scopes, state]),
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

/** Times of one form sort as text. */
const latest = (times: readonly (string | null)[]): string | null =>
  times.reduce((a, b) => ((a ?? "") > (b ?? "") ? a : b));

function accountOf(keys: readonly KeyOfServices[], { all, isCut }: { all: boolean; isCut: boolean }): string {
  if (keys.length === 0) return all ? "Nothing: there was never a key." : "Nothing: no key is live.";
  const head = ["key id", "holder", "scopes", "services", "created", "expires", "last used", ...(all ? ["state"] : [])];
  const lines = table([head, ...keys.map((key) => [...cells(key), ...(all ? [stateOf(key)] : [])])]);
  return isCut
    ? `${lines}\nOnly the newest ${shownMax} of each service are shown. Name a holder to see the rest.`
    : lines;
}

const cells = ({ key_id, holder, scopes, services, created_at, expires_at, last_used_at }: KeyOfServices): string[] => [
  key_id,
  holder,
  scopes.join(","),
  services.join(","),
  toSeconds(created_at),
  expires_at ? toSeconds(expires_at) : "never",
  last_used_at ? toSeconds(last_used_at) : "never",
];

function stateOf({ state, revoked_at, revoked_by, revoked_reason }: ListedKey): string {
  if (revoked_at === null) return state;
  const why = revoked_reason ? `: ${oneLine(revoked_reason)}` : "";
  return `${state} ${toSeconds(revoked_at)} by ${oneLine(revoked_by ?? "")}${why}`;
}
