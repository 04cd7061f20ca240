/** All that the routes reach outside themselves. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { ChangePoints } from "./commands/change-points.ts";
import type { Cancel, Reserve } from "./reservations/index.ts";

export interface Deps {
  /** For reads, and for recurring grants, which few change. */
  readonly db: Db;
  readonly authenticate: Authenticate;
  readonly changePoints: ChangePoints;
  readonly reserve: Reserve;
  readonly cancel: Cancel;
  /** Called after a schedule was made or changed: the scheduler looks what is due next. */
  readonly onScheduled: () => void;
}
