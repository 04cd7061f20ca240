/** Reads one user. Reads that arrive while a statement runs share the next one. */
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { selectEach, type UserView } from "../store/users.ts";

export const getUser = (db: Db): ((userId: string) => Promise<UserView | null>) =>
  gather<string, UserView | null>({ run: (userIds) => selectEach(db, userIds) });
