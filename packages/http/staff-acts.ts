/**
 * Acts of staff. Each is recorded in the transaction that does it, in the table `staff_acts` of the service, so that no act
 * lacks its record and no record its act (docs/adr/0115).
 */
import { getSqlState, type Queryable, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import { type Principal, type StaffRole, staffRoles } from "./callers.ts";
import { actAlreadyUndone, actNotFound, forbidden } from "./problems.ts";

/** The person who acts. */
export interface StaffActor {
  readonly name: `user:${string}`;
  readonly role: StaffRole;
}

export interface StaffAct {
  readonly actor: StaffActor;
  /** The operationId of the route. */
  readonly act: string;
  /** The target: a user, a row, an order, a key. */
  readonly target: string;
  readonly reason: string;
  readonly details?: object;
  /** The act that this one undoes: it had the same target, is one of these acts, and has these details. */
  readonly undoes?: { readonly actId: string; readonly acts: readonly string[]; readonly details: object } | undefined;
}

/** The caller as staff, in the highest of their roles. The access rule of the route already requires one. */
export function staffActor({ principal }: { readonly principal: Principal | undefined }): StaffActor {
  if (principal?.kind === "user") {
    const role = staffRoles.findLast((each) => principal.roles.includes(each));
    if (role) return { name: principal.name, role };
  }
  throw forbidden("this is for staff");
}

/** Returns the id of the record. */
export async function recordStaffAct(tx: Tx, staffAct: StaffAct): Promise<string> {
  const { actor, act, target, reason, details = {}, undoes } = staffAct;
  if (undoes) await rejectUnlessUndoable(tx, target, undoes);
  try {
    const { rows } = await tx.query<{ act_id: string }>({
      name: "insert staff act",
      text: `insert into staff_acts (actor, role, act, target, reason, details, undoes)
             values ($1, $2, $3, $4, $5, $6, $7) returning act_id::text as act_id`,
      values: [actor.name, actor.role, act, target, reason, JSON.stringify(details), undoes?.actId ?? null],
    });
    return rows[0]?.act_id ?? "";
  } catch (error) {
    if (undoes && getSqlState(error) === uniqueViolation)
      throw actAlreadyUndone(`act ${undoes.actId} was undone before`);
    throw error;
  }
}

const uniqueViolation = "23505";

async function rejectUnlessUndoable(
  tx: Tx,
  target: string,
  { actId, acts, details }: NonNullable<StaffAct["undoes"]>,
): Promise<void> {
  const { rowCount } = await tx.query({
    name: "find undoable act",
    text: `select from staff_acts where act_id = $1 and target = $2 and act = any($3) and details @> $4`,
    values: [actId, target, acts, JSON.stringify(details)],
  });
  if (rowCount === 0) throw actNotFound(`there is no act ${actId} on ${target} that this undoes`);
}

/** A row of the audit log. */
export interface ListedAct {
  readonly act_id: string;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  readonly role: StaffRole | null;
  readonly act: string;
  readonly target: string;
  readonly reason: string | null;
  readonly details: object;
  readonly undoes: string | null;
  readonly undone_by: string | null;
}

export interface ActPage {
  readonly actor?: string | undefined;
  readonly target?: string | undefined;
  /** Acts before this one, in the order of time and id. */
  readonly before?: { readonly at: string; readonly actId: string } | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function selectStaffActs(db: Queryable, page: ActPage): Promise<ListedAct[]> {
  const values: unknown[] = [page.limit];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const { actor, target, before } = page;
  const filters = [
    ...(actor === undefined ? [] : [`a.actor = ${parameter(actor)}`]),
    ...(target === undefined ? [] : [`a.target = ${parameter(target)}`]),
    ...(before === undefined
      ? []
      : [`(a.created_at, a.act_id) < (${parameter(before.at)}::timestamptz, ${parameter(before.actId)}::bigint)`]),
  ];
  const { rows } = await db.query<ListedAct>(
    `select a.act_id::text as act_id, ${rfc3339Sql("a.created_at")} as at, a.actor, a.role, a.act, a.target, a.reason, a.details,
            a.undoes::text as undoes, (select u.act_id::text from staff_acts u where u.undoes = a.act_id) as undone_by
       from staff_acts a ${filters.length > 0 ? `where ${filters.join(" and ")}` : ""}
      order by a.created_at desc, a.act_id desc limit $1`,
    values,
  );
  return rows;
}
