/** Discards a dead letter for an operator. One route for all tables with dead letters of every service. */
import { named } from "@todoke/contracts/api";
import { type HttpApp, problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { Type } from "typebox";
import { deadLetterNotFound } from "./problems.ts";

export interface DiscardRoutesOptions {
  readonly db: Db;
  readonly deadLetters: readonly DeadLetters[];
  /** Wakes the workers of the table: a discarded event no longer parks the events behind it. */
  readonly onDiscarded: (table: string) => void;
}

/** The bounds are those of the table `redrives`. */
const DiscardBody = named("DiscardRequest", {
  discarded_by: Type.String({ minLength: 1, maxLength: 128, description: "Who requests the discard; recorded." }),
  reason: Type.String({ minLength: 1, maxLength: 500, description: "Why it is never tried again; recorded." }),
});

const DiscardedView = named("Discarded", {
  discarded: Type.Boolean({ description: "False if it was discarded or redriven before; then nothing has changed." }),
});

export function discardRoutes(app: HttpApp, { db, deadLetters, onDiscarded }: DiscardRoutesOptions): void {
  app.post(
    "/debug/dead/:table/:id/discard",
    {
      schema: {
        operationId: "discardDeadLetter",
        summary: "Discard a dead letter",
        tags: ["Operations"],
        description:
          "Deletes a dead letter, which is then never tried again; a copy is kept with who requested it and why. " +
          "Repeating the call has no effect.",
        params: Type.Object({
          table: Type.String({ maxLength: 63, description: "A table with dead letters." }),
          id: Type.String({ maxLength: 128, description: "The id of the dead letter." }),
        }),
        body: DiscardBody,
        refusals: [deadLetterNotFound, problems.notFound],
        response: { 200: DiscardedView },
      },
    },
    async ({ params: { table: name, id }, body: { discarded_by: by, reason } }) => {
      const table = deadLetters.find((each) => each.name === name);
      const known = deadLetters.map((each) => each.name).join(", ");
      if (!table) throw problems.notFound(`${name} has no dead letters here; the tables are ${known}`);
      const found = table.isId(id) ? await table.discard(db, [id], { by, reason }) : [];
      if (found.length > 0) onDiscarded(name);
      else if (!table.isId(id) || !((await table.show(db, id)) ?? (await table.showDiscarded(db, id))))
        throw deadLetterNotFound(`${name} has never had a dead letter with the id ${id}`);
      return { discarded: found.length > 0 };
    },
  );
}
