/** The API keys of back-ends. */
import { withQuery } from "../api/request.ts";
import type { ApiKey, FailedPart } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, FailedParts, Foreign, PageTitle, Panel, Tag, Time } from "../parts/basics.tsx";
import { Filters } from "../parts/filters.tsx";
import { Await } from "../parts/loaded.tsx";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

export function Keys() {
  const t = useTexts();
  const [{ holder, state }, setParams] = useQueryParams();
  const keys = useGet<{ keys: readonly ApiKey[]; failed: readonly FailedPart[] }>(
    withQuery("/v1/admin/keys", { holder, state }),
    { topics: ["audit"], everyMs: 30_000 },
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
      <p class="muted">
        {t.keysByCommand} <code>todoke keys create</code>, <code>todoke keys revoke</code>
      </p>
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
      ]}
    />
  );
}
