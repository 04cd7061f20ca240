/** Ends an API key at the service, for an admin: the change, its record and the stored response are one commit. */
import { recordStaffAct, revokeKeys, type StaffActor } from "@todoke/http";
import { afterCommit } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import type { ApiKeyDeps } from "./create-service-key.ts";

export interface RevokeServiceKeyRequest {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly keyId: string;
  readonly reason: string;
}

/** A key that the service does not have, or that was revoked, stays as it is and leaves no record. */
export const revokeServiceKey =
  ({ db, onChanged }: ApiKeyDeps) =>
  ({ key, actor, keyId, reason }: RevokeServiceKeyRequest): Promise<CommandResponse> =>
    once(db, key, async (tx) => {
      const revoked = await revokeKeys(tx, { keyId }, { by: actor.name, reason });
      if (revoked.length > 0) {
        await recordStaffAct(tx, { actor, act: "revokeServiceKey", target: keyId, reason });
        afterCommit(tx, () => onChanged("api_keys"));
      }
      return { status: 200, body: { key_id: keyId, revoked: revoked.length > 0 } };
    });
