/** The dependencies of the routes. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { Commands } from "./commands/create-commands.ts";

export interface Deps extends Commands {
  /** For reads. */
  readonly db: Db;
  readonly authenticate: Authenticate;
}
