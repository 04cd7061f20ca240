/**
 * `todoke keys create`: creates a key and prints it once. Only its SHA-256 is stored, in each service. If a service fails, it
 * prints the command that creates the same key there; that command contains no secret.
 */
import { randomUUIDv7 } from "node:crypto";
import {
  createKey,
  futureTime,
  hashApiKey,
  holderName,
  listKeys,
  maxKeyRate,
  type NewKey,
  newApiKey,
  type Scope,
  scopes,
} from "@todoke/http";
import { getSqlState } from "@todoke/kernel/db";
import type { Invocation } from "../command.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { parseOperator } from "../operator.ts";
import { print, printError, table } from "../output.ts";
import {
  forEachService,
  parseTarget,
  printFailures,
  type ServiceFailure,
  type ServiceResults,
  type Target,
} from "./each-service.ts";

export async function create(call: Invocation): Promise<number> {
  const { secret, ...request } = parseKey(call);
  const expires = parseExpiry(call);
  if (call.values.services === undefined)
    throw new UsageError("Name the services that accept the key: --services <service,…>, or --services all.");
  const target = await parseTarget(call);
  const expiresAt = await resolveExpiry(target, expires);
  const key: NewKey = { ...request, ...(expiresAt !== undefined && { expiresAt }) };
  const { succeeded, failed } = await createInServices(target, key);
  const created = { key, secret, services: succeeded.map(({ service }) => service) };
  print(call.switches.has("json") ? toJson(created) : formatKey(created));
  const code = printFailures(failed);
  if (code !== 0)
    printError(`When this is fixed, create the same key there with:\n  ${formatRetryCommand(key, failed)}`);
  return code;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function parseKey({ args, values }: Invocation) {
  const { id = randomUUIDv7(), sha256 } = values;
  if (!uuid.test(id)) throw new UsageError("--id is a UUID.");
  return {
    keyId: id,
    holder: parseHolder(args),
    scopes: parseScopes(values.scopes),
    ...parseRate(values["per-second"]),
    ...parseSecret(sha256),
    createdBy: parseOperator(values),
  };
}

/** A new key; or only the hash of an existing one. */
function parseSecret(sha256: string | undefined): { readonly secret?: string; readonly sha256: string } {
  if (sha256 === undefined) {
    const secret = newApiKey();
    return { secret, sha256: hashApiKey(secret) };
  }
  if (/^[0-9a-f]{64}$/.test(sha256)) return { sha256 };
  throw new UsageError("--sha256 is 64 digits of 0-9 and a-f, as sha256sum prints them; never the key itself.");
}

function parseHolder([holder = "", ...more]: readonly string[]): string {
  if (holderName.test(holder) && more.length === 0) return holder;
  throw new UsageError("Name one holder: a-z, 0-9, - and _, at most 63 characters.");
}

/** In a fixed order, so that the same key gives the same row. */
function parseScopes(given = ""): readonly Scope[] {
  const wanted = given.split(",").map((scope) => scope.trim());
  const unknown = wanted.filter((scope) => !scopes.some((known) => known === scope));
  if (unknown.length === 0) return scopes.filter((scope) => wanted.includes(scope));
  throw new UsageError(`Give the scopes of the key: --scopes with one or more of ${scopes.join(",")}.`);
}

function parseRate(given: string | undefined): Pick<NewKey, "perSecond"> {
  if (given === undefined) return {};
  const perSecond = /^\d{1,7}$/.test(given) ? Number(given) : 0;
  if (perSecond >= 1 && perSecond <= maxKeyRate) return { perSecond };
  throw new UsageError(`--per-second is a whole number from 1 to ${maxKeyRate}.`);
}

const expiryDaysMax = 3_650;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;

type Expiry = { readonly inDays: number } | { readonly at: string };

/** Long enough for a quarterly rotation; a forgotten key still expires. */
const expiryDaysDefault = 90;

/** Undefined: never (--never). */
function parseExpiry({ values: { expires: given }, switches }: Invocation): Expiry | undefined {
  if (switches.has("never")) {
    if (given !== undefined) throw new UsageError("Give --expires or --never, not both.");
    return undefined;
  }
  if (given === undefined) return { inDays: expiryDaysDefault };
  const days = Number(/^(\d{1,4})d$/.exec(given)?.[1]);
  if (days >= 1 && days <= expiryDaysMax) return { inDays: days };
  if (instant.test(given)) return { at: given };
  throw new UsageError(`--expires is 1d to ${expiryDaysMax}d, or a future time as 2027-01-31T00:00:00Z.`);
}

/** Reads every database before the first write. The clock of the first database determines the expiry for all. */
async function resolveExpiry(target: Target, expires: Expiry | undefined): Promise<string | undefined> {
  const { succeeded, failed } = await forEachService(target, async ({ db }) => {
    await listKeys(db, { all: false, limit: 1 });
    return expires && futureTime(db, expires);
  });
  if (failed.length > 0)
    throw new CommandFailed(["No key was created.", ...failed.map(({ message }) => message)].join("\n  "));
  const time = succeeded[0]?.result;
  if (expires && !time) throw new UsageError("--expires is in the past.");
  return time;
}

const createInServices = (target: Target, key: NewKey): Promise<ServiceResults<void>> =>
  forEachService(target, async ({ service, db, wake }) => {
    const created = await createKey(db, key).catch((error) => {
      if (getSqlState(error) !== "23505") throw error;
      throw new CommandFailed(`${service} already has a key with this SHA-256 under another id.`);
    });
    if (!created)
      throw new CommandFailed(`${service} has another key with the id ${key.keyId}, or this key was revoked there.`);
    // A service may have cached the key as unknown.
    await wake("api_keys");
  });

interface CreatedKey {
  readonly key: NewKey;
  /** Undefined if only the hash of the key is known. */
  readonly secret: string | undefined;
  readonly services: readonly string[];
}

function formatKey({ key, secret, services }: CreatedKey): string {
  const fields = table([
    ["key id", key.keyId],
    ["holder", key.holder],
    ["scopes", key.scopes.join(", ")],
    ["services", services.join(", ") || "none yet"],
    ["expires", key.expiresAt ?? "never"],
    ...(key.perSecond === undefined ? [] : [["rate", `${key.perSecond} requests per second to each process`]]),
  ]);
  if (secret === undefined) return fields;
  return `${secret}\n\n${fields}\n\nThe key is printed only once and not stored. Save it for ${key.holder} now.`;
}

const toJson = ({ key, secret, services }: CreatedKey): string =>
  JSON.stringify(
    {
      ...(secret !== undefined && { key: secret }),
      key_id: key.keyId,
      holder: key.holder,
      scopes: key.scopes,
      services,
      expires_at: key.expiresAt ?? null,
      per_second: key.perSecond ?? null,
    },
    null,
    2,
  );

function formatRetryCommand(key: NewKey, refused: readonly ServiceFailure[]): string {
  const words = [
    ["todoke keys create", key.holder],
    ["--scopes", key.scopes.join(",")],
    ["--services", refused.map(({ service }) => service).join(",")],
    ["--id", key.keyId],
    ["--sha256", key.sha256],
    key.expiresAt ? ["--expires", key.expiresAt] : ["--never"],
    key.perSecond === undefined ? [] : ["--per-second", String(key.perSecond)],
  ];
  return words.flat().join(" ");
}
