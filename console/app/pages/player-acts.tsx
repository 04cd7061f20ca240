/** Suspend, reinstate, and change the role of a user. */
import { path } from "../api/request.ts";
import type { User } from "../api/types.ts";
import { ActButton } from "../parts/dialog.tsx";
import { useStaff } from "../parts/staff.ts";
import { useTexts } from "../texts/index.ts";

const userAct = (id: string, verb: string) => `${path`/v1/admin/users/${id}`}:${verb}`;
const roles = ["VIEWER", "OPERATOR", "ADMIN"] as const;

export function PlayerActs({ user }: { readonly user: User }) {
  const t = useTexts();
  const { can, canActOn } = useStaff();
  const { user_id, status } = user;
  if (status === "DELETED" || !canActOn(user_id)) return null;
  return (
    <>
      {status === "ACTIVE" ? (
        <ActButton
          class="danger"
          request={{
            title: t.suspend,
            text: t.suspendMeans,
            fields: [{ name: "until", label: t.until, type: "datetime-local", isOptional: true }],
            confirm: t.suspend,
            isDangerous: true,
            toAct: ({ until }, reason) => ({
              path: userAct(user_id, "suspend"),
              body: { reason, ...(until && { until: new Date(until).toISOString() }) },
            }),
          }}
        >
          {t.suspend}
        </ActButton>
      ) : (
        <ActButton
          class="primary"
          request={{
            title: t.reinstate,
            text: t.reinstateMeans,
            confirm: t.reinstate,
            toAct: (_values, reason) => ({ path: userAct(user_id, "reinstate"), body: { reason } }),
          }}
        >
          {t.reinstate}
        </ActButton>
      )}
      {can("ADMIN") && (
        <ActButton
          request={{
            title: t.changeRole,
            fields: [
              {
                name: "act",
                label: t.act,
                options: [
                  ["grant-role", t.grantRole],
                  ["revoke-role", t.revokeRole],
                ],
              },
              { name: "role", label: t.roles, options: roles.map((role) => [role, role] as const) },
            ],
            confirm: t.changeRole,
            toAct: ({ act = "", role }, reason) => ({ path: userAct(user_id, act), body: { role, reason } }),
          }}
        >
          {t.changeRole}
        </ActButton>
      )}
    </>
  );
}
