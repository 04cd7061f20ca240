/** `todoke keys revoke`: one key, or all that a holder has, in every service that can be reached. */
import { holderName, type KeySelection, listKeys, revokeKeys } from "@todoke/http";
import { askerOf } from "../asker.ts";
import type { Call } from "../command.ts";
import { CommandFailed, Misused } from "../faults.ts";
import { complain, say, table } from "../output.ts";
import { codeOf, onEachService, targetOf } from "./each-service.ts";

export async function revoke(call: Call): Promise<number> {
  const of = choiceOf(call.names);
  const { reason } = call.values;
  if (reason !== undefined && (!reason.trim() || reason.length > 500))
    throw new Misused("--reason has 1 to 500 characters.");
  const by = askerOf(call.values);
  const { answered, refused } = await onEachService(await targetOf(call), async ({ db, tellThoseWhoRun }) => {
    const revoked = await revokeKeys(db, of, { by, reason });
    if (revoked.length > 0) await tellThoseWhoRun();
    const isKnown = (await listKeys(db, { of, all: true, limit: 1 })).length > 0;
    return { revoked, isKnown };
  });
  const lines = answered.flatMap(({ service, answer }) => answer.revoked.map((keyId) => [keyId, service]));
  if (refused.length === 0 && !answered.some(({ answer }) => answer.isKnown)) throw unknown(call.names[0] ?? "");
  if (lines.length > 0) say(`${table(lines)}\nRevoked. Services that run refuse it now, or within 5 seconds.`);
  else if (refused.length === 0) say("Nothing to do: it was revoked before.");
  const code = codeOf(refused);
  if (code !== 0) complain("It may still be taken there. When that is mended, run this again: twice is once.");
  return code;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function choiceOf([name = "", ...more]: readonly string[]): KeySelection {
  if (more.length === 0 && uuid.test(name)) return { keyId: name };
  if (more.length === 0 && holderName.test(name)) return { holder: name };
  throw new Misused("Say which: the id of a key, or a holder for all that it has.");
}

const unknown = (name: string) =>
  new CommandFailed(
    `There is no key of "${name}", and none with that id. \`todoke keys list --all\` says what there is; keys in TODOKE_API_KEYS end with that setting.`,
  );
