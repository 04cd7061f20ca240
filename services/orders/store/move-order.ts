/**
 * The one statement by which an order takes a step, whoever takes it: a sender, a cancel, a person. The order, its ledger,
 * its history (by a trigger of the table) and its event are one commit. Who lost the race writes nothing and is told so.
 */
import { hash, randomUUIDv7 } from "node:crypto";
import { type Db, statement, type Tx } from "@todoke/kernel/db";
import type { OrderStatus, ReasonCode } from "../order.ts";
import { answerSql, ledgerStatusSql } from "./answer.ts";
import { insertOrderEventsSql } from "./events.ts";
import { ordersSql } from "./outbox-orders.ts";

export interface Move {
  /** outbox_orders.id */
  readonly id: string;
  /** Of the claim under which the step is taken; null: nobody may hold the order. */
  readonly epoch: string | null;
  /** Taken only from one of these. */
  readonly from: readonly OrderStatus[];
  readonly to: Exclude<OrderStatus, "sending">;
  /** Who takes a step without a claim. */
  readonly by?: string;
  readonly code?: ReasonCode;
  readonly why?: string;
  /** With all its attempts before it, as if it had never been sent. */
  readonly anew?: boolean;
  /** When it is looked at again; at once, if not given. */
  readonly inMs?: number;
  readonly brokerOrderId?: string;
  /** What the broker made of it, in our words. */
  readonly result?: Readonly<Record<string, unknown>>;
  /** What the broker answered, as it came: kept, cut where it is long, with the digest of all of it. */
  readonly evidence?: string;
}

const movedSql = ordersSql.updateHeldRow({
  orUnclaimed: true,
  where: "t.status = any($4::text[])",
  set: `status = $3,
         changed_by = coalesce($5::jsonb ->> 'by', t.changed_by),
         attempts = case when $5::jsonb ? 'anew' then 0 else t.attempts end,
         last_error_code = case when $3 = 'succeeded' then null else coalesce($5::jsonb ->> 'code', t.last_error_code) end,
         last_error_msg = case when $3 = 'succeeded' then null
                               when $5::jsonb ? 'code' then $5::jsonb ->> 'why' else t.last_error_msg end,
         asked = case when $3 = 'unknown' then t.asked + 1 else 0 end,
         in_doubt_since = case when $3 = 'unknown' then coalesce(t.in_doubt_since, clock_timestamp()) end,
         broker_order_id = coalesce($5::jsonb ->> 'broker_order_id', t.broker_order_id),
         broker_result = coalesce($5::jsonb -> 'result', t.broker_result),
         evidence = coalesce($5::jsonb -> 'evidence', t.evidence),
         evidence_digest = coalesce($5::jsonb ->> 'evidence_digest', t.evidence_digest),
         done_at = case when $3 in ('succeeded', 'aborted') then clock_timestamp() end,
         -- Kept as long after its end as any other, however late that is: who asks again must not order a second time.
         expires_at = case when $3 in ('succeeded', 'aborted') then clock_timestamp() + (t.expires_at - t.created_at)
                           else t.expires_at end`,
  dueInMs: "($5::jsonb ->> 'in_ms')::float8",
  lease: "end",
});

export const text = `
with moved as materialized (${movedSql}),
told as materialized (select ${answerSql("m")} as answer from moved m),
noted as (
  update idempo_ledger l
     set status = (select ${ledgerStatusSql("m")} from moved m),
         answer = (select answer from told),
         result_digest = case when $3 in ('succeeded', 'aborted')
                              then 'sha256:' || encode(sha256((select answer from told)), 'hex') end,
         expires_at = case when $3 in ('succeeded', 'aborted') then clock_timestamp() + (l.expires_at - l.first_seen_at)
                           else l.expires_at end
   where l.order_row_id = $1 and (select count(*) from moved) > 0
),
insert_events as (
  ${insertOrderEventsSql({
    id: "$6::uuid",
    type: "case o.status when 'succeeded' then 'OrderSucceeded' when 'aborted' then 'OrderFailed' else 'OrderUnresolved' end",
    from: "moved o where o.status in ('succeeded', 'aborted') or o.status = 'unknown' and o.asked = 1",
  })}
)
select m.version from moved m`;

/** Whether the step was taken. */
export async function moveOrder(db: Db | Tx, move: Move): Promise<boolean> {
  const { id, epoch, from, to } = move;
  const query = {
    name: "move order",
    text,
    values: [id, epoch, to, from, JSON.stringify(saidOf(move)), randomUUIDv7()],
  };
  const { rows } = isPool(db) ? await statement(db, query) : await db.query(query);
  return rows.length > 0;
}

/** A pool runs the statement as a transaction of its own, whose loss is told as CommitUnknown. */
const isPool = (db: Db | Tx): db is Db => "totalCount" in db;

function saidOf({ by, code, why, anew, inMs = 0, brokerOrderId, result, evidence }: Move) {
  return {
    by,
    code,
    why: why === undefined ? undefined : keepable(why),
    in_ms: inMs,
    ...(anew && { anew }),
    broker_order_id: brokerOrderId,
    result,
    ...(evidence !== undefined && {
      evidence: kept(evidence),
      evidence_digest: `sha256:${hash("sha256", evidence, "hex")}`,
    }),
  };
}

const evidenceMax = 8_192;

/** JSON as what it says, unless it is long or PostgreSQL would refuse it; all else as text. */
function kept(evidence: string): unknown {
  const text = keepable(evidence, evidenceMax);
  if (text !== evidence || /\\u0000|\\ud[89a-f]/i.test(text)) return { text };
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}

// Enough for what a broker says; an error must not grow the table.
const whyMax = 2_000;

/** What PostgreSQL refuses to keep is replaced: a reason must not fail the step. */
const keepable = (why: string, max = whyMax) => why.slice(0, max).toWellFormed().replaceAll("\0", "\uFFFD");
