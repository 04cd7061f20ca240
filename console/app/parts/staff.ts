/** The user who is logged in, and what the role allows. The services decide; this only hides what would be refused. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { StaffRole, User } from "../api/types.ts";

const staffRoles: readonly StaffRole[] = ["VIEWER", "OPERATOR", "ADMIN"];

export const rankOf = ({ roles }: Pick<User, "roles">): number =>
  staffRoles.findLastIndex((role) => roles.includes(role));

export const StaffContext = createContext<User | undefined>(undefined);

export function useStaff() {
  const me = useContext(StaffContext);
  const can = (role: StaffRole) => me !== undefined && rankOf(me) >= staffRoles.indexOf(role);
  /** Below ADMIN, nobody acts on their own user. */
  const canActOn = (userId: string) => can("ADMIN") || (can("OPERATOR") && me?.user_id !== userId);
  return { me, can, canActOn };
}
