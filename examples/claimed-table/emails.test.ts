import { readFile } from "node:fs/promises";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { problem } from "@todoke/kernel/problem";
import { deleteFinished } from "@todoke/kernel/retention";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { emailSender, emails, failedEmails, type Send, sentEmails } from "./emails.ts";

const own = { name: "emails", dir: new URL("./migrations/", import.meta.url) };

async function setup(...recipients: string[]) {
  const t = await testDatabase({ sets: [kernelMigrations, own] });
  await t.db.query(`insert into emails (recipient, body) select unnest($1::text[]), 'hello'`, [recipients]);
  const rows = async () =>
    (await t.db.query(`select recipient, status, attempt_count, last_error from emails order by email_id`)).rows;
  return { ...t, rows };
}

const noSuchAddress = problem(422, "no-such-address", "The address does not exist");

test("an email is sent, a failed one is retried later, and an impossible one is FAILED at once", async () => {
  await using t = await setup("ann", "bob", "carl");
  const sent: string[] = [];
  const send: Send = async ({ recipient }, messageId) => {
    if (recipient === "bob") throw new Error("the mail server is busy");
    if (recipient === "carl") throw noSuchAddress("carl does not exist");
    sent.push(messageId);
  };
  await using sender = emailSender(t.db, send);
  const { rows: started } = await t.db.query(`select now()::text as at`);
  expect(await sender.runOnce()).toMatchObject({ claimed: 3, done: 1, retry: 1, dead: 1 });
  expect(sent).toEqual(["email-1"]);
  expect(await t.rows()).toEqual([
    { recipient: "ann", status: "SENT", attempt_count: 1, last_error: null },
    { recipient: "bob", status: "QUEUED", attempt_count: 1, last_error: "Error: the mail server is busy" },
    { recipient: "carl", status: "FAILED", attempt_count: 1, last_error: "no-such-address: carl does not exist" },
  ]);
  const retried = `update emails set next_retry_at = next_retry_at + interval '1 hour'
    where status = 'QUEUED' and next_retry_at >= $1::timestamptz + interval '5 seconds'`;
  expect((await t.db.query(retried, [started[0].at])).rowCount).toBe(1); // Even later, so that it cannot become due during the test.
  expect(await sender.runOnce()).toMatchObject({ claimed: 0 });
});

test("an email whose sender crashed is sent by another with the same message ID", async () => {
  await using t = await setup("ann");
  await emails.claim(t.db, { limit: 1, leaseMs: 0, worker: "crashed" });
  const sent: string[] = [];
  await using sender = emailSender(t.db, async (_email, messageId) => void sent.push(messageId));
  expect(await sender.runOnce()).toMatchObject({ claimed: 1, done: 1 });
  expect(sent).toEqual(["email-1"]);
});

test("a sent email is deleted after a month, and an unsent one never", async () => {
  await using t = await setup("ann", "bob");
  await t.db.query(`update emails set next_retry_at = now() - interval '1 year'`);
  await t.db.query(`update emails set status = 'SENT', sent_at = now() - interval '31 days' where recipient = 'ann'`);
  expect(await deleteFinished(t.db, sentEmails)).toBe(1);
  expect((await t.rows()).map(({ recipient }) => recipient)).toEqual(["bob"]);
});

test("a FAILED email is listed, and a redrive sends it", async () => {
  await using t = await setup("ann");
  await using failing = emailSender(t.db, () => Promise.reject(noSuchAddress("not yet")));
  await failing.runOnce();
  const [failed] = await failedEmails.list(t.db, { limit: 10 });
  expect(failed).toMatchObject({ id: "1", about: "ann", last_error: "no-such-address: not yet" });
  expect(await failedEmails.redrive(t.db, ["1"], { by: "aki", reason: "the address exists now" })).toEqual(["1"]);
  await using sender = emailSender(t.db, async () => {});
  expect(await sender.runOnce()).toMatchObject({ done: 1 });
  expect(await failedEmails.show(t.db, "1")).toMatchObject({ body: "hello", redrives: [{ redriven_by: "aki" }] });
});

test("the guide shows this table and this sender", async () => {
  const guide = await readFile(new URL("../../docs/guides/add-a-claimed-table.md", import.meta.url), "utf8");
  for (const [language, file] of [
    ["sql", "./migrations/0001_emails.sql"],
    ["ts", "./emails.ts"],
  ] as const) {
    const text = await readFile(new URL(file, import.meta.url), "utf8");
    expect(guide).toContain(`\`\`\`${language}\n${text}\`\`\`\n`);
  }
});
