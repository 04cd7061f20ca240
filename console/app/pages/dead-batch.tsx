/** A batch of redrives or discards: how far it is, and a way to stop it. */
import { Link } from "wouter-preact";
import { path } from "../api/request.ts";
import type { DeadBatch } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Facts, Foreign, PageTitle, Panel, Time, useCount } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Await } from "../parts/loaded.tsx";
import { useStaff } from "../parts/staff.ts";
import { useTexts } from "../texts/index.ts";
import { Actor } from "./audit-log.tsx";

export function DeadBatchPage({ service, id }: { readonly service: string; readonly id: string }) {
  const t = useTexts();
  const batch = useGet<DeadBatch>(path`/v1/admin/services/${service}/dead-letter-batches/${id}`, {
    everyMs: 1_000,
    topics: ["batches"],
  });
  return (
    <>
      <PageTitle
        title={
          batch.data
            ? `${t.verbs[batch.data.act]}: ${service} · ${t.tables[batch.data.table] ?? batch.data.table}`
            : t.batches
        }
      />
      <Await of={batch}>{(data) => <BatchView batch={data} />}</Await>
    </>
  );
}

function BatchView({ batch }: { readonly batch: DeadBatch }) {
  const t = useTexts();
  const { can } = useStaff();
  const formatCount = useCount();
  const { service, batch_id, table, filter, state, total, total_capped, examined, applied, error } = batch;
  const filterText = Object.entries(filter)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
  return (
    <Panel
      title={t.batchStates[state]}
      actions={
        state === "RUNNING" &&
        can("OPERATOR") && (
          <ActButton
            request={{
              title: t.stopBatch,
              text: t.stopMeans,
              confirm: t.stop,
              toAct: (_values, reason) => ({
                path: `${path`/v1/admin/services/${service}/dead-letter-batches/${batch_id}`}:stop`,
                body: { reason },
              }),
            }}
          >
            {t.stop}
          </ActButton>
        )
      }
    >
      <progress
        max={Math.max(total, examined, 1)}
        value={state === "DONE" ? Math.max(total, examined, 1) : examined}
        aria-label={t.batchStates[state]}
      />
      <p aria-live="polite">{t.batchProgress(applied.toLocaleString(t.locale), formatCount(total, total_capped))}</p>
      {error && (
        <p class="error-text">
          <Foreign>{error}</Foreign>
        </p>
      )}
      <Facts
        rows={[
          [t.filter, filterText ? <Foreign key="filter">{filterText}</Foreign> : t.all],
          [t.reason, <Foreign key="reason">{batch.reason}</Foreign>],
          [t.by, <Actor key="by" actor={batch.created_by} />],
          [t.started, <Time key="started" at={batch.created_at} />],
          [t.ended, <Time key="ended" at={batch.finished_at} />],
        ]}
      />
      <p>
        <Link href={`/dead/${service}/${table}`}>{t.stillDead}</Link>
      </p>
    </Panel>
  );
}
