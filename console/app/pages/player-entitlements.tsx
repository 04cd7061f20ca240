/** A player's products and their history, with buttons to grant and revoke. */
import { useState } from "preact/hooks";
import { path, withQuery } from "../api/request.ts";
import type { Entitlement, Int, Page } from "../api/types.ts";
import { ofPlayer, useGet } from "../api/use-get.ts";
import { Empty, Foreign, IdLink, Panel, Tag, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

interface HistoryRow {
  readonly version: Int;
  readonly action: string;
  readonly source: string | null;
  readonly source_id: string | null;
  readonly caller: string | null;
  readonly event_id: string;
  readonly created_at: string;
}

export function PlayerEntitlements({ id }: { readonly id: string }) {
  const t = useTexts();
  const { canActOn } = useStaff();
  const [{ cursor }] = useQueryParams();
  const [opened, setOpened] = useState<string>();
  const list = useGet<{ entitlements: readonly Entitlement[] } & Page>(
    withQuery(path`/v1/users/${id}/entitlements`, { limit: 50, cursor }),
    { everyMs: 5_000, ...ofPlayer(id) },
  );
  return (
    <>
      <Panel title={t.playerTabs.entitlements} actions={canActOn(id) && <Grant id={id} />}>
        <Await of={list}>
          {({ entitlements, next_cursor }) => (
            <>
              {entitlements.length === 0 ? (
                <Empty>{t.ownsNothing}</Empty>
              ) : (
                <Table
                  label={t.playerTabs.entitlements}
                  rows={entitlements}
                  keyOf={({ stock_keeping_unit }) => stock_keeping_unit}
                  columns={[
                    {
                      head: t.sku,
                      cell: ({ stock_keeping_unit: sku }) => (
                        <button
                          type="button"
                          class="link strong"
                          onClick={() => setOpened(opened === sku ? undefined : sku)}
                        >
                          <Foreign>{sku}</Foreign>
                        </button>
                      ),
                    },
                    { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
                    { head: t.changed, cell: ({ updated_at }) => <Time at={updated_at} /> },
                    { head: t.expires, cell: ({ expires_at }) => <Time at={expires_at} /> },
                    {
                      head: t.act,
                      cell: ({ stock_keeping_unit: sku, status }) =>
                        canActOn(id) && status === "ACTIVE" ? (
                          <Revoke id={id} sku={sku} />
                        ) : (
                          <span class="muted">–</span>
                        ),
                    },
                  ]}
                />
              )}
              <Paging next={next_cursor} />
            </>
          )}
        </Await>
      </Panel>
      {opened !== undefined && <History key={opened} id={id} sku={opened} />}
    </>
  );
}

function Grant({ id }: { readonly id: string }) {
  const t = useTexts();
  return (
    <ActButton
      class="primary"
      request={{
        title: t.grant,
        fields: [
          { name: "sku", label: t.sku },
          { name: "until", label: t.expires, type: "datetime-local", isOptional: true },
        ],
        confirm: t.grant,
        toAct: ({ sku, until }, reason) => ({
          path: path`/v1/admin/users/${id}/entitlement-grants`,
          body: { stock_keeping_unit: sku, reason, ...(until && { expires_at: new Date(until).toISOString() }) },
        }),
      }}
    >
      {t.grant}
    </ActButton>
  );
}

function Revoke({ id, sku }: { readonly id: string; readonly sku: string }) {
  const t = useTexts();
  return (
    <ActButton
      class="small"
      request={{
        title: t.revokeProduct(sku),
        confirm: t.revoke,
        isDangerous: true,
        toAct: (_values, reason) => ({
          path: path`/v1/admin/users/${id}/entitlement-revokes`,
          body: { stock_keeping_unit: sku, reason },
        }),
      }}
    >
      {t.revoke}
    </ActButton>
  );
}

function History({ id, sku }: { readonly id: string; readonly sku: string }) {
  const t = useTexts();
  const history = useGet<{ history: readonly HistoryRow[] }>(
    withQuery(path`/v1/users/${id}/entitlements/${sku}/history`, { limit: 50 }),
  );
  return (
    <Panel title={t.historyOf(sku)}>
      <Await of={history}>
        {({ history: rows }) => (
          <Table
            label={t.historyOf(sku)}
            rows={rows}
            keyOf={({ event_id }) => event_id}
            columns={[
              { head: t.act, cell: ({ action }) => action },
              { head: t.by, cell: ({ caller }) => <Foreign>{caller}</Foreign> },
              {
                head: t.source,
                cell: ({ source, source_id }) => <Foreign>{[source, source_id].filter(Boolean).join(" ")}</Foreign>,
              },
              { head: t.event, cell: ({ event_id }) => <IdLink id={event_id} /> },
              { head: t.time, cell: ({ created_at }) => <Time at={created_at} /> },
            ]}
          />
        )}
      </Await>
    </Panel>
  );
}
