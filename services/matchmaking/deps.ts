/** All that the routes reach outside themselves. */
import type { Authenticate } from "@todoke/http";
import type { Commands } from "./commands/index.ts";

export interface Deps extends Commands {
  readonly authenticate: Authenticate;
}
