/** The dead letters of one table: filter, select, and redrive or discard some or all of them. */
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { path, request, withQuery } from "../api/request.ts";
import type { DeadBatch, DeadLetter, DeadPreview, Page } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, Foreign, PageTitle, Panel, ShortId, Time, useCount } from "../parts/basics.tsx";
import { DeadLettersButtons, deadLetterHref } from "../parts/dead-letter-buttons.tsx";
import { ActDialog, type ActRequest } from "../parts/dialog.tsx";
import { Filters } from "../parts/filters.tsx";
import { Await, useErrorText } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table, useSelection } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

interface TableOf {
  readonly service: string;
  readonly table: string;
}

export function DeadLettersPage({ service, table }: TableOf) {
  const t = useTexts();
  const { can } = useStaff();
  const selection = useSelection();
  const [{ group, event_type, error, user_id, cursor }] = useQueryParams();
  const filter = { group, event_type, error, user_id };
  const isFiltered = Object.values(filter).some(Boolean);
  const rows = useGet<{ dead_letters: readonly DeadLetter[] } & Page>(
    withQuery(path`/v1/admin/services/${service}/dead-letters/${table}`, { ...filter, cursor }),
    // While rows are selected, they must not move.
    {
      ...(selection.chosen.size === 0 && { everyMs: 5_000, topics: ["dead-letters"] }),
    },
  );
  return (
    <>
      <PageTitle title={`${t.nav.dead}: ${service} · ${t.tables[table] ?? table}`}>
        {can("OPERATOR") && <BatchButtons service={service} table={table} filter={filter} />}
      </PageTitle>
      <Filters
        fields={[
          ["error", t.errorContains],
          ["event_type", t.eventType],
          ["user_id", t.player],
          ["group", t.group],
        ]}
      />
      <Panel>
        <Await of={rows}>
          {({ dead_letters, next_cursor }) => (
            <>
              {can("OPERATOR") && selection.chosen.size > 0 && (
                <div class="selected" role="status">
                  {t.selected(selection.chosen.size)}
                  <DeadLettersButtons
                    service={service}
                    table={table}
                    ids={[...selection.chosen]}
                    onDone={selection.clear}
                  />
                  <button type="button" class="quiet" onClick={selection.clear}>
                    {t.selectNone}
                  </button>
                </div>
              )}
              {dead_letters.length === 0 ? (
                <Empty>{isFiltered ? t.noHits : t.noDead}</Empty>
              ) : (
                <Rows
                  service={service}
                  table={table}
                  rows={dead_letters}
                  selection={can("OPERATOR") ? selection : undefined}
                />
              )}
              <Paging next={next_cursor} />
            </>
          )}
        </Await>
      </Panel>
      <Batches service={service} />
    </>
  );
}

interface RowsProps extends TableOf {
  readonly rows: readonly DeadLetter[];
  readonly selection: ReturnType<typeof useSelection> | undefined;
}

function Rows({ service, table, rows, selection }: RowsProps) {
  const t = useTexts();
  return (
    <Table
      label={t.nav.dead}
      rows={rows}
      keyOf={({ id }) => id}
      selection={selection}
      columns={[
        {
          head: t.event,
          cell: ({ id, event_type }) => (
            <Link class="strong" href={deadLetterHref({ service, table, id })}>
              {event_type}
            </Link>
          ),
        },
        { head: t.about, cell: ({ about }) => <ShortId id={about} /> },
        {
          head: t.error,
          cell: ({ last_error }) => (
            <span class="clip">
              <Foreign>{last_error}</Foreign>
            </span>
          ),
        },
        { head: t.attempts, align: "end", cell: ({ attempt_count }) => attempt_count },
        { head: t.deadSince, cell: ({ since }) => <Time at={since} /> },
      ]}
    />
  );
}

type Filter = Readonly<Record<string, string | undefined>>;

/** All that match, not the page: counted first. */
function BatchButtons({ service, table, filter }: TableOf & { readonly filter: Filter }) {
  const t = useTexts();
  const formatCount = useCount();
  const [, navigate] = useLocation();
  const [batch, setBatch] = useState<ActRequest<DeadBatch>>();
  const [failure, setFailure] = useState<Error>();
  const failureText = useErrorText(failure);
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
  const filterText = Object.entries(given)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");

  async function prepare(act: "redrive" | "discard"): Promise<void> {
    setFailure(undefined);
    const preview = withQuery(`${path`/v1/admin/services/${service}/dead-letters/${table}`}:preview`, filter);
    try {
      const { count, capped, through } = await request<DeadPreview>(preview);
      const number = formatCount(count, capped);
      setBatch({
        title: t.batchTitle[act](number),
        text: (
          <>
            <p>{filterText ? t.batchFilter(filterText) : t.batchAll}</p>
            <p>
              {t.batchCount(number)} {act === "redrive" ? t.redriveMeans : t.discardMeans}
            </p>
          </>
        ),
        confirm: t.verbs[act],
        isDangerous: act === "discard",
        ...(!filterText && { typeToConfirm: table }),
        toAct: (_values, reason) => ({
          path: path`/v1/admin/services/${service}/dead-letter-batches`,
          body: { act, table, filter: given, through, reason, ...(!filterText && { all: true }) },
        }),
        done({ batch_id }) {
          navigate(`/dead/${service}/batches/${batch_id}`);
          return t.batchStarted;
        },
      });
    } catch (error) {
      setFailure(error as Error);
    }
  }
  return (
    <>
      {failure && <span role="alert">{failureText}</span>}
      <button type="button" onClick={() => prepare("redrive")}>
        {t.allMatching.redrive}
      </button>
      <button type="button" onClick={() => prepare("discard")}>
        {t.allMatching.discard}
      </button>
      {batch && <ActDialog request={batch as unknown as ActRequest<never>} close={() => setBatch(undefined)} />}
    </>
  );
}

function Batches({ service }: { readonly service: string }) {
  const t = useTexts();
  const { data } = useGet<{ batches: readonly DeadBatch[] }>(path`/v1/admin/services/${service}/dead-letter-batches`, {
    everyMs: 5_000,
    topics: ["batches"],
  });
  if (!data?.batches.length) return null;
  return (
    <Panel title={t.batches}>
      <Table
        label={t.batches}
        rows={data.batches.slice(0, 10)}
        keyOf={({ batch_id }) => batch_id}
        columns={[
          {
            head: t.act,
            cell: ({ batch_id, act }) => (
              <Link class="strong" href={`/dead/${service}/batches/${batch_id}`}>
                {t.verbs[act]}
              </Link>
            ),
          },
          { head: t.state, cell: ({ state }) => t.batchStates[state] },
          { head: t.count, align: "end", cell: ({ applied }) => applied.toLocaleString(t.locale) },
          { head: t.reason, cell: ({ reason }) => <Foreign>{reason}</Foreign> },
          { head: t.started, cell: ({ created_at }) => <Time at={created_at} /> },
        ]}
      />
    </Panel>
  );
}
