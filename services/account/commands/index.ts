/** Every command of the service, put together for one process. */
import { told } from "../telemetry.ts";
import { deleteUser } from "./delete-user.ts";
import { grantRole } from "./grant-role.ts";
import { readUser } from "./read-user.ts";
import { reinstateUser } from "./reinstate-user.ts";
import { type ResolveDeps, resolveIdentity } from "./resolve-identity.ts";
import { revokeRole } from "./revoke-role.ts";
import { suspendUser } from "./suspend-user.ts";
import { updateUser } from "./update-user.ts";

export const openCommands = (deps: ResolveDeps) => ({
  readUser: readUser(deps.db),
  resolveIdentity: told("resolve", resolveIdentity(deps)),
  updateUser: told("update", updateUser(deps)),
  suspendUser: told("suspend", suspendUser(deps)),
  reinstateUser: told("reinstate", reinstateUser(deps)),
  grantRole: told("grant_role", grantRole(deps)),
  revokeRole: told("revoke_role", revokeRole(deps)),
  deleteUser: told("delete", deleteUser(deps)),
});

export type Commands = ReturnType<typeof openCommands>;
