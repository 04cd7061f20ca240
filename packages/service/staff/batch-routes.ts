/** Batches of dead letters: start, progress, stop. */
import { guarded, IdempotencyHeaders, idempotencyKey, problems, sendResponse, staffActor } from "@todoke/http";
import { batchNotFound } from "../problems.ts";
import { selectBatch, selectBatches } from "./batch-store.ts";
import { findTable, operators, type StaffRouteDeps, viewers } from "./deps.ts";
import { startDeadLetterBatch } from "./start-dead-letter-batch.ts";
import { stopDeadLetterBatch } from "./stop-dead-letter-batch.ts";
import { BatchBody, BatchesView, BatchParams, BatchView, StopBody } from "./views.ts";

// More than an operator starts in a day.
const listedMax = 50;

export function batchRoutes(deps: StaffRouteDeps): void {
  const { app, prefix, authenticate, service, reads, hide } = deps;
  const path = `${prefix}/dead-letter-batches`;
  const tags = ["Operations"];
  const start = startDeadLetterBatch(deps);
  const stop = stopDeadLetterBatch(deps);

  app.post(
    path,
    guarded(authenticate, operators, {
      hide,
      passesOnRefusals: hide,
      operationId: "startDeadLetterBatch",
      summary: "Start a batch",
      tags,
      description:
        "Redrives or discards all dead letters of a table that match the filter, up to the position of the preview. Each row is changed at most once. A row that becomes dead after the batch was created is not included.",
      headers: IdempotencyHeaders,
      body: BatchBody,
      refusals: [problems.notFound],
      response: { 201: BatchView },
    }),
    async (request, reply) => {
      const { table, filter = {}, all = false, ...body } = request.body;
      const key = idempotencyKey(request, request.caller);
      const batch = { key, actor: staffActor(request), table: findTable(deps, table), filter, all, ...body };
      return sendResponse(reply, await start(batch));
    },
  );
  app.get(
    path,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "listDeadLetterBatches",
      summary: "List batches",
      tags,
      description: `Returns the newest ${listedMax} batches of dead letters.`,
      response: { 200: BatchesView },
    }),
    async () => ({ batches: (await selectBatches(reads, listedMax)).map((row) => ({ service, ...row })) }),
  );
  app.get(
    `${path}/:batch_id`,
    guarded(authenticate, viewers, {
      hide,
      passesOnRefusals: hide,
      operationId: "getDeadLetterBatch",
      summary: "Get a batch",
      tags,
      description: "Returns the progress of a batch of dead letters.",
      params: BatchParams,
      refusals: [batchNotFound],
      response: { 200: BatchView },
    }),
    async ({ params: { batch_id } }) => {
      const row = await selectBatch(reads, batch_id);
      if (!row) throw batchNotFound(`${service} has no batch ${batch_id}`);
      return { service, ...row };
    },
  );
  app.post(
    `${path}/:batch_id([^/:]+)::stop`,
    guarded(authenticate, operators, {
      hide,
      passesOnRefusals: hide,
      operationId: "stopDeadLetterBatch",
      summary: "Stop a batch",
      tags,
      description:
        "Stops a batch after its current step. Its changes so far stay. A batch that has ended is not changed.",
      params: BatchParams,
      headers: IdempotencyHeaders,
      body: StopBody,
      refusals: [batchNotFound],
      response: { 200: BatchView },
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      const { reason } = request.body;
      return sendResponse(
        reply,
        await stop({ key, actor: staffActor(request), batchId: request.params.batch_id, reason }),
      );
    },
  );
}
