/** The commands of the service, for one process. */
import { countCommands } from "../telemetry.ts";
import { deleteUser } from "./delete-user.ts";
import { getUser } from "./get-user.ts";
import { grantRole } from "./grant-role.ts";
import { reinstateUser } from "./reinstate-user.ts";
import { type ResolveDeps, resolveIdentity } from "./resolve-identity.ts";
import { revokeRole } from "./revoke-role.ts";
import { suspendUser } from "./suspend-user.ts";
import { updateUser } from "./update-user.ts";

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

export type Commands = ReturnType<typeof createCommands>;
