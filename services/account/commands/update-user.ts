/** Changes a user's profile. If two changes name the same version, one succeeds; the other gets a version mismatch. */
import { transaction } from "@todoke/kernel/db";
import { versionMismatch } from "../problems.ts";
import { type ProfileChange, updateProfile } from "../store/change-users.ts";
import type { UserView } from "../store/users.ts";
import { applyUserAction, type UserActionDeps } from "./run-user-action.ts";

/** The canonical form of a BCP 47 language tag; undefined if it is not one. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}

export interface UpdateUserRequest {
  readonly actorId: string;
  readonly userId: string;
  /** The version that the caller has read. */
  readonly version: number;
  readonly profile: ProfileChange;
}

export const updateUser =
  ({ db, outbox }: UserActionDeps) =>
  ({ actorId, userId, version, profile }: UpdateUserRequest): Promise<UserView> =>
    transaction(db, (tx) =>
      applyUserAction(tx, outbox, {
        actorId,
        userId,
        allowed: "self-and-admins",
        async change(_, user) {
          if (user.version !== version)
            throw versionMismatch(`the user is at version ${user.version}; read it again, then retry`);
          await updateProfile(tx, userId, profile);
          return { action: "UPDATE" };
        },
      }),
    );
