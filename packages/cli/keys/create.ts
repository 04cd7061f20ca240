/**
 * `todoke keys create`: a key for a holder, shown once. Only its SHA-256 is written, into the table of each service; when
 * one of them fails, the command that gives it the same key is told, and holds no secret.
 */
import { randomUUIDv7 } from "node:crypto";
import {
  createKey,
  futureTime,
  hashApiKey,
  holderName,
  listKeys,
  type NewKey,
  newApiKey,
  type Scope,
  scopes,
} from "@todoke/http";
import { getSqlState } from "@todoke/kernel/db";
import { askerOf } from "../asker.ts";
import type { Call } from "../command.ts";
import { CommandFailed, Misused } from "../faults.ts";
import { complain, say, table } from "../output.ts";
import { type Answers, codeOf, onEachService, type Refused, type Target, targetOf } from "./each-service.ts";

export async function create(call: Call): Promise<number> {
  const { secret, ...wish } = wishOf(call);
  const expires = expiryOf(call);
  if (call.values.services === undefined)
    throw new Misused("Say which services take it: --services with their names, or --services all.");
  const target = await targetOf(call);
  const expiresAt = await timeWhenAllAreReady(target, expires);
  const key: NewKey = { ...wish, ...(expiresAt !== undefined && { expiresAt }) };
  const { answered, refused } = await write(target, key);
  const made = { key, secret, services: answered.map(({ service }) => service) };
  say(call.switches.has("json") ? asJson(made) : account(made));
  const code = codeOf(refused);
  if (code !== 0) complain(`When that is mended, this gives it the same key:\n  ${repeat(key, refused)}`);
  return code;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function wishOf({ names, values }: Call) {
  const { id = randomUUIDv7(), sha256 } = values;
  if (!uuid.test(id)) throw new Misused("--id is a UUID.");
  return {
    keyId: id,
    holder: holderOf(names),
    scopes: scopesOf(values.scopes),
    ...secretOf(sha256),
    createdBy: askerOf(values),
  };
}

/** A new one; or only the hash, of one that exists already. */
function secretOf(sha256: string | undefined): { readonly secret?: string; readonly sha256: string } {
  if (sha256 === undefined) {
    const secret = newApiKey();
    return { secret, sha256: hashApiKey(secret) };
  }
  if (/^[0-9a-f]{64}$/.test(sha256)) return { sha256 };
  throw new Misused("--sha256 is 64 digits of 0-9 and a-f, as sha256sum prints them; never the key itself.");
}

function holderOf([holder = "", ...more]: readonly string[]): string {
  if (holderName.test(holder) && more.length === 0) return holder;
  throw new Misused("Say whose key it is: one name of a-z, 0-9, - and _, at most 63 characters.");
}

/** In one order, so that the same key is the same row. */
function scopesOf(given = ""): readonly Scope[] {
  const wanted = given.split(",").map((scope) => scope.trim());
  const strangers = wanted.filter((scope) => !scopes.some((known) => known === scope));
  if (strangers.length === 0) return scopes.filter((scope) => wanted.includes(scope));
  throw new Misused(`Say what it may do: --scopes with one or more of ${scopes.join(",")}.`);
}

const daysMax = 3_650;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;

type Expiry = { readonly inDays: number } | { readonly at: string };

/** Of a key whose command names no end. Long enough for a quarterly rotation, and a forgotten key does not live for ever. */
const defaultDays = 90;

/** Undefined: never, which has to be asked for. */
function expiryOf({ values: { expires: given }, switches }: Call): Expiry | undefined {
  if (switches.has("never")) {
    if (given !== undefined) throw new Misused("--expires and --never contradict each other: give one of them.");
    return undefined;
  }
  if (given === undefined) return { inDays: defaultDays };
  const days = Number(/^(\d{1,4})d$/.exec(given)?.[1]);
  if (days >= 1 && days <= daysMax) return { inDays: days };
  if (instant.test(given)) return { at: given };
  throw new Misused(`--expires is 1d to ${daysMax}d, or a time to come as 2027-01-31T00:00:00Z.`);
}

/** Asks every database before the first is written to; the first one's clock turns days into a time for all. */
async function timeWhenAllAreReady(target: Target, expires: Expiry | undefined): Promise<string | undefined> {
  const { answered, refused } = await onEachService(target, async ({ db }) => {
    await listKeys(db, { all: false, limit: 1 });
    return expires && futureTime(db, expires);
  });
  if (refused.length > 0) throw new CommandFailed(["No key was made.", ...refused.map(({ why }) => why)].join("\n  "));
  const time = answered[0]?.answer;
  if (expires && !time) throw new Misused("--expires is a time that is over already.");
  return time;
}

const write = (target: Target, key: NewKey): Promise<Answers<void>> =>
  onEachService(target, async ({ service, db, tellThoseWhoRun }) => {
    const stands = await createKey(db, key).catch((error) => {
      if (getSqlState(error) !== "23505") throw error;
      throw new CommandFailed(`${service} has a key with this SHA-256 already, under another id.`);
    });
    if (!stands)
      throw new CommandFailed(`${service} has another key under ${key.keyId}, or this one was revoked there.`);
    // Somebody may have tried it before it was there, and been remembered as a stranger.
    await tellThoseWhoRun();
  });

interface Made {
  readonly key: NewKey;
  /** Unless the key was made elsewhere, and only its hash is known here. */
  readonly secret: string | undefined;
  readonly services: readonly string[];
}

function account({ key, secret, services }: Made): string {
  const fields = table([
    ["key id", key.keyId],
    ["holder", key.holder],
    ["scopes", key.scopes.join(", ")],
    ["services", services.join(", ") || "none yet"],
    ["expires", key.expiresAt ?? "never"],
  ]);
  if (secret === undefined) return fields;
  return `${secret}\n\n${fields}\n\nThe key is shown this once and kept nowhere: put it where ${key.holder} finds it.`;
}

const asJson = ({ key, secret, services }: Made): string =>
  JSON.stringify(
    {
      ...(secret !== undefined && { key: secret }),
      key_id: key.keyId,
      holder: key.holder,
      scopes: key.scopes,
      services,
      expires_at: key.expiresAt ?? null,
    },
    null,
    2,
  );

function repeat(key: NewKey, refused: readonly Refused[]): string {
  const words = [
    ["todoke keys create", key.holder],
    ["--scopes", key.scopes.join(",")],
    ["--services", refused.map(({ service }) => service).join(",")],
    ["--id", key.keyId],
    ["--sha256", key.sha256],
    key.expiresAt ? ["--expires", key.expiresAt] : ["--never"],
  ];
  return words.flat().join(" ");
}
