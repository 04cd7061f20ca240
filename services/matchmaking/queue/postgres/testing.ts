/** Test harness of the queue in PostgreSQL. */
import type { DbOptions } from "@todoke/kernel/db";
import { openOutbox } from "@todoke/kernel/outbox";
import { openTestDatabase } from "../../store/testing.ts";
import type { RecordedEnd } from "../record-ends.ts";
import { type Harness, ticketIds } from "../testing.ts";
import { openPostgresQueue } from "./index.ts";

export async function createPostgresHarness() {
  const t = await openTestDatabase();
  const recorded: RecordedEnd[] = [];
  const harness = {
    ...t,
    /** All reported ends. */
    recorded,
    open(options: Partial<DbOptions> = {}) {
      const db = t.open({ poolMax: 4, ...options });
      return openPostgresQueue({
        db,
        outbox: openOutbox(),
        ids: ticketIds,
        onRecorded: (ends) => recorded.push(...ends),
      });
    },
    // Ends are recorded in the same commit.
    async allRecorded() {},
    async damage(ticketId: string) {
      await t.db.query(`update tickets set attributes = '{"skill": null}' where ticket_id = $1`, [ticketId]);
    },
  };
  return harness satisfies Harness;
}
