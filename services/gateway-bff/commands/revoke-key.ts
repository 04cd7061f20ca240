/** Revokes an API key at every service and here, because a key may be accepted by several. */
import type { StaffActor } from "@todoke/http";
import type { IdempotencyKey } from "@todoke/kernel/idempotency";
import type { StaffReads } from "@todoke/service";
import type { Deps } from "../deps.ts";
import { type Answers, answersOf, deployedServices, ownName } from "../staff/ask-services.ts";
import { postTo, type StaffCaller } from "../staff/post-to.ts";

export interface RevokeKeyRequest extends StaffCaller {
  readonly key: IdempotencyKey;
  readonly actor: StaffActor;
  readonly keyId: string;
  readonly reason: string;
}

interface RevokeKeyDeps extends Pick<Deps, "upstreams"> {
  readonly staffReads: StaffReads;
}

/** Returns the services that had the key. One that fails is named: it accepts the key until it has revoked it. */
export const revokeKey =
  ({ upstreams, staffReads }: RevokeKeyDeps) =>
  async ({ key, actor, keyId, reason, ...caller }: RevokeKeyRequest): Promise<Answers> => {
    const revoke = postTo({ ...caller, key: key.key, path: `/v1/admin/keys/${keyId}:revoke`, body: { reason } });
    const own = async () => {
      const { body } = await staffReads.revokeServiceKey({ key, actor, keyId, reason });
      return JSON.parse(body.toString()) as unknown;
    };
    const { answers, failed } = await answersOf([
      ...deployedServices(upstreams).map(([name, upstream]) => [name, () => revoke(upstream)] as const),
      [ownName, own],
    ]);
    return { answers: answers.filter(({ value }) => (value as { readonly revoked: boolean }).revoked), failed };
  };
