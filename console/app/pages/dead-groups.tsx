/** Dead letters of all services, grouped by their error: one fault has one row, however many it killed. */
import { Link } from "wouter-preact";
import { withQuery } from "../api/request.ts";
import type { DeadGroup, DeadGroups } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, FailedParts, Foreign, PageTitle, Panel, Time, useCount } from "../parts/basics.tsx";
import { Await } from "../parts/loaded.tsx";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

const tableHref = (service: string, table: string, group?: string) => withQuery(`/dead/${service}/${table}`, { group });

export function DeadGroupsPage() {
  const t = useTexts();
  const formatCount = useCount();
  const [{ service, table }, setParams] = useQueryParams();
  const groups = useGet<DeadGroups>(withQuery("/v1/admin/dead-letters/groups", { service, table }), {
    everyMs: 5_000,
    topics: ["dead-letters"],
  });
  return (
    <>
      <PageTitle title={t.nav.dead} />
      <Await of={groups}>
        {(data) => (
          <>
            <FailedParts failed={data.failed} />
            <div class="chips">
              {(service || table) && (
                <button type="button" onClick={() => setParams({ service: undefined, table: undefined })}>
                  {t.allServices} ✕
                </button>
              )}
              {data.tables
                .filter(({ dead }) => dead > 0)
                .map((each) => (
                  <Link key={`${each.service} ${each.table}`} class="chip" href={tableHref(each.service, each.table)}>
                    {each.service} · {t.tables[each.table] ?? each.table}{" "}
                    <strong>{formatCount(each.dead, each.capped)}</strong>
                  </Link>
                ))}
            </div>
            <Panel>{data.groups.length === 0 ? <Empty>{t.noDead}</Empty> : <Groups groups={data.groups} />}</Panel>
          </>
        )}
      </Await>
    </>
  );
}

function Groups({ groups }: { readonly groups: readonly DeadGroup[] }) {
  const t = useTexts();
  return (
    <Table
      label={t.nav.dead}
      rows={groups}
      keyOf={({ service, table, group }) => `${service} ${table} ${group}`}
      columns={[
        {
          head: t.error,
          cell: ({ service, table, group, error }) => (
            <Link class="strong" href={tableHref(service, table, group)}>
              <Foreign>{error}</Foreign>
            </Link>
          ),
        },
        { head: t.service, cell: ({ service, table }) => `${service} · ${t.tables[table] ?? table}` },
        {
          head: t.count,
          align: "end",
          cell: ({ count }) => <span class="number">{count.toLocaleString(t.locale)}</span>,
        },
        { head: t.first, cell: ({ first_at }) => <Time at={first_at} /> },
        { head: t.last, cell: ({ last_at }) => <Time at={last_at} /> },
      ]}
    />
  );
}
