/** For `todoke audit`: the broker's books as they are now, beside what the last reconciliation stored. */
import type { Env } from "@todoke/http";
import { type Audit, perRuleMax } from "@todoke/kernel/audit";
import type { Db } from "@todoke/kernel/db";
import { describeError } from "@todoke/kernel/worker";
import { type Books, openBooks } from "../brokers/index.ts";
import { readSettings } from "../config.ts";
import { selectTime } from "../store/reconciliations.ts";
import { compareBooks, type Mismatch } from "./compare-books.ts";

const rule = "the broker's books, read now, agree with the orders of the last day";
const timeoutMs = 10 * 60 * 1_000;

/** Of the broker that the settings name. Books that cannot be read are a finding: nobody knows whether they agree. */
export async function auditBooks(db: Db, env: Env): Promise<Audit> {
  await using books = openBooks(readSettings(env, []).broker, db);
  return auditBooksOf(books, db);
}

/** An order can change between the two reads, so only what two comparisons find is a finding. */
export async function auditBooksOf(books: Books, db: Db): Promise<Audit> {
  const about = `orders at the broker ${books.name}`;
  try {
    const first = await compare(books, db);
    const again = first.mismatches.length > 0 ? new Set((await compare(books, db)).mismatches.map(nameOf)) : new Set();
    const findings = first.mismatches
      .filter((mismatch) => again.has(nameOf(mismatch)))
      .map(({ clientOrderId, kind, detail }) => ({ rule, about: clientOrderId, detail: `${kind}: ${detail}` }));
    return { checked: { [about]: first.seen }, rules: [rule], findings: findings.slice(0, perRuleMax) };
  } catch (error) {
    const detail = `they cannot be read: ${describeError(error)}`;
    return { checked: { [about]: 0 }, rules: [rule], findings: [{ rule, about: books.name, detail }] };
  }
}

const nameOf = ({ clientOrderId, kind }: Mismatch) => `${clientOrderId} ${kind}`;

const compare = async (broker: Books, db: Db) =>
  compareBooks({ db, broker, startedAt: await selectTime(db), signal: AbortSignal.timeout(timeoutMs) });
