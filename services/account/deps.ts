/** The dependencies of the routes. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { deleteUser } from "./commands/delete-user.ts";
import { getUser } from "./commands/get-user.ts";
import { grantRole } from "./commands/grant-role.ts";
import { reinstateUser } from "./commands/reinstate-user.ts";
import { type ResolveDeps, resolveIdentity } from "./commands/resolve-identity.ts";
import { revokeRole } from "./commands/revoke-role.ts";
import { suspendUser } from "./commands/suspend-user.ts";
import { updateUser } from "./commands/update-user.ts";
import { countCommands } from "./telemetry.ts";

export const createCommands = (deps: ResolveDeps) => ({
  getUser: getUser(deps.db),
  resolveIdentity: countCommands("resolve", resolveIdentity(deps)),
  updateUser: countCommands("update", updateUser(deps)),
  suspendUser: countCommands("suspend", suspendUser(deps)),
  reinstateUser: countCommands("reinstate", reinstateUser(deps)),
  grantRole: countCommands("grant_role", grantRole(deps)),
  revokeRole: countCommands("revoke_role", revokeRole(deps)),
  deleteUser: countCommands("delete", deleteUser(deps)),
});

export interface Deps extends ReturnType<typeof createCommands> {
  readonly db: Db;
  readonly authenticate: Authenticate;
}
