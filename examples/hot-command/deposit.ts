/** A hot command: concurrent deposits share one statement and one commit, and each idempotency key takes effect once. */
import { randomUUIDv7 } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import {
  type CommandResponse,
  command,
  digestJson,
  type KeyColumns,
  keyConflict,
  toKeyColumns,
} from "@todoke/kernel/idempotency";
import { problem } from "@todoke/kernel/problem";

export interface Deposit {
  readonly account: string;
  readonly amount: number;
}

const amountTooHigh = problem(422, "amount-too-high", "The amount is too high");

interface DepositRow extends Deposit {
  readonly event_id: string;
}

// The kernel adds the rest of the statement: keys, stored responses and events.
const deposit = command<DepositRow, "too_high">({
  name: "deposit",
  columns: "account text, amount bigint, event_id uuid",
  refusals: { too_high: "amount > 1000" },
  change: `
changed as (
  insert into accounts as a (account, balance) select account, amount from accepted order by account
  on conflict (account) do update set balance = a.balance + excluded.balance, version = a.version + 1
  returning account, balance, version
),
results as materialized (
  select r.*, c.version, 200 as response_status,
         convert_to(jsonb_build_object('balance', c.balance)::text, 'utf8') as response_body
    from accepted r join changed c on c.account = r.account
)`,
  events: {
    subject: "bank.events",
    eventId: "event_id",
    eventType: "'Deposited'",
    aggregateKey: "account",
    version: "version",
    occurredAt: "now()",
    fields: { account: "account", amount: "amount" },
  },
});

export function createDeposit(db: Db) {
  const submit = createBatcher({
    run: (rows: readonly (DepositRow & KeyColumns)[]) => deposit.run(db, rows),
    // Two deposits to one account, or with one key, never share a batch.
    conflictKeys: ({ idem_key, account }) => [`key ${idem_key}`, `account ${account}`],
  });

  return async (key: string, body: Deposit): Promise<CommandResponse> => {
    const columns = toKeyColumns({ scope: "demo POST /deposits", key, requestHash: digestJson(body) });
    const result = await submit({ ...columns, ...body, event_id: randomUUIDv7() });
    if (result.result === "conflict") throw keyConflict();
    if (result.result === "too_high") throw amountTooHigh("A deposit is at most 1000.");
    return result;
  };
}
