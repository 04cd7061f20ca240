/** The modes that the rules of any process have or had lately. */
import type { Db } from "@todoke/kernel/db";

const recordModesSql = `
insert into modes (mode, last_in_rules) select unnest($1::text[]), now() order by 1
on conflict (mode) do update set last_in_rules = excluded.last_in_rules`;

/** A ticket lives at most a day, so no ticket can be left in a mode that is no longer listed. */
const selectModesSql = `select mode from modes where last_in_rules > now() - interval '7 days'`;

/** Records that the rules have these modes now, and returns all modes of the last week. */
export async function recordModes(db: Db, modes: readonly string[]): Promise<string[]> {
  await db.query({ name: "record modes", text: recordModesSql, values: [modes] });
  const { rows } = await db.query<{ mode: string }>({ name: "select modes", text: selectModesSql });
  return rows.map(({ mode }) => mode);
}
