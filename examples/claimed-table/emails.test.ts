import { readFile } from "node:fs/promises";
import { problem } from "@todoke/kernel/problem";
import { removeFinished } from "@todoke/kernel/retention";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { emailSender, emails, type Send, sentEmails } from "./emails.ts";

const own = { name: "emails", dir: new URL("./migrations/", import.meta.url) };

async function setup(...recipients: string[]) {
  const t = await testDatabase({ sets: [own] });
  await t.db.query(`insert into emails (recipient, body) select unnest($1::text[]), 'hello'`, [recipients]);
  const rows = async () =>
    (await t.db.query(`select recipient, status, attempt_count, last_error from emails order by email_id`)).rows;
  return { ...t, rows };
}

const noSuchAddress = problem({ code: "no-such-address", status: 422, title: "Nobody has this address" });

test("a mail is sent, a failed one waits for its next try, and one that never can be sent is failed at once", async () => {
  await using t = await setup("ann", "bob", "nobody");
  const sent: string[] = [];
  const send: Send = async ({ recipient }, messageId) => {
    if (recipient === "bob") throw new Error("the mail server is busy");
    if (recipient === "nobody") throw noSuchAddress("there is no nobody");
    sent.push(messageId);
  };
  await using sender = emailSender(t.db, send);
  const { rows: begun } = await t.db.query(`select now()::text as at`);
  expect(await sender.runOnce()).toMatchObject({ claimed: 3, done: 1, retry: 1, dead: 1 });
  expect(sent).toEqual(["email-1"]);
  expect(await t.rows()).toEqual([
    { recipient: "ann", status: "SENT", attempt_count: 1, last_error: null },
    { recipient: "bob", status: "QUEUED", attempt_count: 1, last_error: "Error: the mail server is busy" },
    { recipient: "nobody", status: "FAILED", attempt_count: 1, last_error: "no-such-address: there is no nobody" },
  ]);
  const retried = `update emails set next_retry_at = next_retry_at + interval '1 hour'
    where status = 'QUEUED' and next_retry_at >= $1::timestamptz + interval '5 seconds'`;
  expect((await t.db.query(retried, [begun[0].at])).rowCount).toBe(1); // later still, so that it cannot come meanwhile
  expect(await sender.runOnce()).toMatchObject({ claimed: 0 });
});

test("a mail whose sender died is sent by another, under the same message id", async () => {
  await using t = await setup("ann");
  await emails.claim(t.db, { limit: 1, leaseMs: 0, worker: "a process that died" });
  const sent: string[] = [];
  await using sender = emailSender(t.db, async (_email, messageId) => void sent.push(messageId));
  expect(await sender.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(sent).toEqual(["email-1"]);
});

test("a mail that was sent a month ago is removed, and one that was not is kept however old it is", async () => {
  await using t = await setup("ann", "bob");
  await t.db.query(`update emails set next_retry_at = now() - interval '1 year'`);
  await t.db.query(`update emails set status = 'SENT', sent_at = now() - interval '31 days' where recipient = 'ann'`);
  expect(await removeFinished(t.db, sentEmails)).toBe(1);
  expect((await t.rows()).map(({ recipient }) => recipient)).toEqual(["bob"]);
});

test("the guide shows the table and the sender that run here, to the letter", async () => {
  const guide = await readFile(new URL("../../docs/guides/add-a-claimed-table.md", import.meta.url), "utf8");
  for (const [language, file] of [
    ["sql", "./migrations/0001_emails.sql"],
    ["ts", "./emails.ts"],
  ] as const) {
    const text = await readFile(new URL(file, import.meta.url), "utf8");
    expect(guide).toContain(`\`\`\`${language}\n${text}\`\`\`\n`);
  }
});
