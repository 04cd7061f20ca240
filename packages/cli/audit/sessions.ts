/** A rule between account and the gateway: suspended and deleted users have no session that lets them act. */
import { type InactiveUser, selectInactive } from "@todoke/account/audit";
import { selectSessionsOfInactive } from "@todoke/gateway-bff/audit";
import { type Audit, type AuditFinding, perRuleMax } from "@todoke/kernel/audit";
import { withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { statementTimeoutMs } from "./own-rules.ts";

const rule = "no suspended or deleted user has a session that lets them act";
/** The gateway learns of a suspension within a second; a minute is late. */
const graceMs = 60_000;
const pageMax = 5_000;

interface SessionsAuditOptions {
  readonly selected: readonly ServiceEntry[];
  readonly configured: readonly ServiceEntry[];
  readonly env: Env;
}

/** Undefined unless account or the gateway is selected, and both have a database. */
export async function auditSessions({ selected, configured, env }: SessionsAuditOptions): Promise<Audit | undefined> {
  const find = (name: string) => configured.find((entry) => entry.name === name);
  const [account, gateway] = [find("account"), find("gateway-bff")];
  if (!account || !gateway || !selected.some((entry) => entry === account || entry === gateway)) return undefined;
  const options = { env, purpose: "todoke audit", statementTimeoutMs };
  let checked = 0;
  const findings: AuditFinding[] = [];
  await withDatabase({ ...options, entry: account }, async ({ db }) => {
    await withDatabase({ ...options, entry: gateway }, async ({ db: gatewayDb }) => {
      for (let after = ""; findings.length < perRuleMax; ) {
        const page: readonly InactiveUser[] = await selectInactive(db, { after, graceMs, limit: pageMax });
        checked += page.length;
        for (const session of await selectSessionsOfInactive(gatewayDb, page)) {
          const { status, since } = page.find(({ user_id }) => user_id === session.user_id) as InactiveUser;
          findings.push({
            rule,
            about: session.session_id,
            detail: `of ${session.user_id}, who is ${status} since ${since}; opened ${session.created_at}, and the gateway takes the user for ${session.status}`,
          });
        }
        after = page.at(-1)?.user_id ?? "";
        if (page.length < pageMax) break;
      }
    });
  });
  return { checked: { "inactive users": checked }, rules: [rule], findings: findings.slice(0, perRuleMax) };
}
