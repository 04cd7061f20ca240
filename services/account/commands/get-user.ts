/** Reads one user. Reads that arrive while a statement runs share the next one. */

import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { selectEach, type UserView } from "../store/users.ts";

export const getUser = (db: Db): ((userId: string) => Promise<UserView | null>) =>
  createBatcher<string, UserView | null>({ run: (userIds) => selectEach(db, userIds) });
