/**
 * A user's own words about themself. Of two who change the same version, one does, and the other is told that it is not
 * the latest any more.
 */
import { transaction } from "@todoke/kernel/db";
import { versionMismatch } from "../problems.ts";
import { type ProfileChange, updateProfile } from "../store/change-users.ts";
import type { UserView } from "../store/users.ts";
import type { ActDeps } from "./act-once.ts";
import { carryOut } from "./carry-out.ts";

export interface UpdateUser {
  readonly actorId: string;
  readonly userId: string;
  /** The version that was seen when this was decided. */
  readonly version: number;
  readonly profile: ProfileChange;
}

export const updateUser =
  ({ db, outbox }: ActDeps) =>
  ({ actorId, userId, version, profile }: UpdateUser): Promise<UserView> =>
    transaction(db, (tx) =>
      carryOut(tx, {
        outbox,
        act: { actorId, userId, for: "oneself" },
        async change(_, user) {
          if (user.version !== version)
            throw versionMismatch(`the user is at version ${user.version}; read it again, and then decide`);
          await updateProfile(tx, userId, profile);
          return { action: "UPDATE" };
        },
      }),
    );
