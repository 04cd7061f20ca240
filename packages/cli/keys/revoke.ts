/** `todoke keys revoke`: revokes one key, or all keys of a holder, in every service that can be reached. */
import { holderName, type KeySelection, listKeys, revokeKeys } from "@todoke/http";
import type { Invocation } from "../command.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { parseOperator } from "../operator.ts";
import { print, printError, table } from "../output.ts";
import { forEachService, parseTarget, printFailures } from "./each-service.ts";

export async function revoke(call: Invocation): Promise<number> {
  const of = parseSelection(call.args);
  const { reason } = call.values;
  if (reason !== undefined && (!reason.trim() || reason.length > 500))
    throw new UsageError("--reason has 1 to 500 characters.");
  const by = parseOperator(call.values);
  const target = await parseTarget(call);
  const { succeeded, failed } = await forEachService(target, async ({ db, wake }) => {
    const revoked = await revokeKeys(db, of, { by, reason });
    if (revoked.length > 0) await wake("api_keys");
    const isKnown = (await listKeys(db, { of, all: true, limit: 1 })).length > 0;
    return { revoked, isKnown };
  });
  const lines = succeeded.flatMap(({ service, result }) => result.revoked.map((keyId) => [keyId, service]));
  if (failed.length === 0 && !succeeded.some(({ result }) => result.isKnown)) throw unknownKey(call.args[0] ?? "");
  if (lines.length > 0) print(`${table(lines)}\nRevoked. Running services reject the key within 5 seconds.`);
  else if (failed.length === 0) print("It was already revoked.");
  if (target.skipped.length > 0)
    printError(`Not revoked in ${target.skipped.join(", ")}: no database of theirs is set here.`);
  const code = printFailures(failed);
  if (code !== 0)
    printError("These services may still accept the key. When this is fixed, run the command again; it is idempotent.");
  return code;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function parseSelection([name = "", ...more]: readonly string[]): KeySelection {
  if (more.length === 0 && uuid.test(name)) return { keyId: name };
  if (more.length === 0 && holderName.test(name)) return { holder: name };
  throw new UsageError("Name the id of a key, or a holder to revoke all its keys.");
}

const unknownKey = (name: string) =>
  new CommandFailed(
    `No key has the id or the holder "${name}". \`todoke keys list --all\` lists all keys. To revoke a key in TODOKE_API_KEYS, remove it from that setting.`,
  );
