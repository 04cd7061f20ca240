/** Which modes there are, and were until lately. */
import type { Db } from "@todoke/kernel/db";

/**
 * Notes that the rules have these, and gives all that any process' rules had within a week. Tickets live a day at the most, so
 * that nobody can be left in one that is forgotten.
 */
export async function noteModes(db: Db, modes: readonly string[]): Promise<string[]> {
  await db.query({ name: "note modes", text: noteText, values: [modes] });
  const { rows } = await db.query<{ mode: string }>({ name: "select modes", text: selectText });
  return rows.map(({ mode }) => mode);
}

const noteText = `
insert into modes (mode, last_in_rules) select unnest($1::text[]), now() order by 1
on conflict (mode) do update set last_in_rules = excluded.last_in_rules`;

const selectText = `select mode from modes where last_in_rules > now() - interval '7 days'`;
