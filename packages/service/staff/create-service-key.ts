/**
 * Lets the service accept an API key, for an admin: the key, its record and the stored response are one commit. Only the hash is known
 * here, so a repetition after a lost answer gives the same answer, and a key whose answer was lost is in the list, with its creator.
 */
import { createKey, futureTime, problems, recordStaffAct, type Scope, type StaffActor, scopes } from "@todoke/http";
import { afterCommit, type Db, getSqlState } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";

export interface CreateServiceKeyRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly newKey: {
    readonly key_id: string;
    /** Hex. */
    readonly sha256: string;
    readonly holder: string;
    readonly scopes: readonly Scope[];
    readonly expires_at: string | null;
    readonly per_second?: number;
    readonly reason: string;
  };
}

export interface ApiKeyDeps {
  readonly db: Db;
  /** Wakes every process of the service, which may have cached the key. */
  readonly onChanged: (table: string) => void;
}

export const createServiceKey =
  ({ db, onChanged }: ApiKeyDeps) =>
  ({ key, actor, newKey }: CreateServiceKeyRequest): Promise<CommandResponse> =>
    once(db, key, async (tx) => {
      const { key_id: keyId, sha256, holder, expires_at: at, per_second: perSecond, reason } = newKey;
      // In a fixed order, so that the same key gives the same row.
      const granted = scopes.filter((scope) => newKey.scopes.includes(scope));
      const expiresAt = at === null ? undefined : await futureTime(tx, { at });
      if (at !== null && expiresAt === undefined) throw problems.invalidField("body.expires_at", "is in the past");
      const more = { ...(expiresAt !== undefined && { expiresAt }), ...(perSecond !== undefined && { perSecond }) };
      const created = await createKey(tx, { keyId, holder, scopes: granted, sha256, createdBy: actor.name, ...more });
      if (!created) throw problems.apiKeyConflict(`another or a revoked key has the id ${keyId}`);
      const details = { holder, scopes: granted, expires_at: expiresAt ?? null, per_second: perSecond ?? null };
      await recordStaffAct(tx, { actor, act: "createServiceKey", target: keyId, reason, details });
      afterCommit(tx, () => onChanged("api_keys"));
      return { status: 201, body: { key_id: keyId } };
    }).catch((error) => {
      if (getSqlState(error) === uniqueViolation) throw problems.apiKeyConflict("another key has this hash");
      throw error;
    });

const uniqueViolation = "23505";
