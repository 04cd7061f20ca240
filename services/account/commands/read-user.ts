/** One user, read by id. Reads that arrive while others run are carried out together by the next statement. */
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { selectEach, type UserView } from "../store/users.ts";

export const readUser = (db: Db): ((userId: string) => Promise<UserView | null>) =>
  gather<string, UserView | null>({ run: (userIds) => selectEach(db, userIds) });
