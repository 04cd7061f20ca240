/** The API keys of back-ends. */
import { path, withQuery } from "../api/request.ts";
import type { ApiKey, FailedPart } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, FailedParts, Foreign, PageTitle, Panel, Tag, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Filters } from "../parts/filters.tsx";
import { Await } from "../parts/loaded.tsx";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";
import { type KeyChange, NewKeyButton, notEverywhere } from "./new-key.tsx";

export function Keys() {
  const t = useTexts();
  const [{ holder, state }, setParams] = useQueryParams();
  const keys = useGet<{ keys: readonly ApiKey[]; failed: readonly FailedPart[] }>(
    withQuery("/v1/admin/keys", { holder, state }),
    { everyMs: 30_000, topics: ["audit-log"] },
  );
  return (
    <>
      <PageTitle title={t.nav.keys}>
        <label class="check">
          <input
            type="checkbox"
            checked={state === "any"}
            onChange={({ currentTarget }) => setParams({ state: currentTarget.checked ? "any" : undefined })}
          />
          {t.alsoEnded}
        </label>
        <NewKeyButton />
      </PageTitle>
      <Filters fields={[["holder", t.holder]]} />
      <Panel>
        <Await of={keys}>
          {({ keys: rows, failed }) => (
            <>
              <FailedParts failed={failed} />
              {rows.length === 0 ? <Empty>{holder ? t.noHits : t.noKeys}</Empty> : <KeyRows keys={rows} />}
            </>
          )}
        </Await>
      </Panel>
    </>
  );
}

function KeyRows({ keys }: { readonly keys: readonly ApiKey[] }) {
  const t = useTexts();
  return (
    <Table
      label={t.nav.keys}
      rows={keys}
      keyOf={({ key_id }) => key_id}
      columns={[
        {
          head: t.holder,
          cell: ({ holder, key_id }) => (
            <>
              <strong>
                <Foreign>{holder}</Foreign>
              </strong>{" "}
              <span class="muted">{key_id}</span>
            </>
          ),
        },
        { head: t.state, cell: ({ state }) => <Tag>{state}</Tag> },
        { head: t.scopes, cell: ({ scopes }) => scopes.join(", ") },
        { head: t.services, cell: ({ services }) => services.join(", ") },
        {
          head: t.created,
          cell: ({ created_at, created_by }) => (
            <>
              <Time at={created_at} /> <Foreign>{created_by}</Foreign>
            </>
          ),
        },
        { head: t.expires, cell: ({ expires_at }) => <Time at={expires_at} /> },
        { head: t.lastUsed, cell: ({ last_used_at }) => <Time at={last_used_at} /> },
        { head: "", cell: (key) => key.state === "live" && <Revoke apiKey={key} /> },
      ]}
    />
  );
}

function Revoke({ apiKey: { key_id, holder } }: { readonly apiKey: ApiKey }) {
  const t = useTexts();
  return (
    <ActButton<KeyChange>
      class="quiet small"
      request={{
        title: t.revokeKey(holder),
        text: t.revokeKeyMeans,
        confirm: t.revoke,
        isDangerous: true,
        toAct: (_values, reason) => ({ path: `${path`/v1/admin/keys/${key_id}`}:revoke`, body: { reason } }),
        incomplete: ({ failed }) => notEverywhere(t, failed),
      }}
    >
      {t.revoke}
    </ActButton>
  );
}
