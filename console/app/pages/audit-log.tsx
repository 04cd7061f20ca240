/** The acts of staff in all services, with buttons to undo them. */
import { formatJson } from "../api/json.ts";
import { path, withQuery } from "../api/request.ts";
import type { AuditAct, FailedPart, Page } from "../api/types.ts";
import { oppositeOf } from "../api/undo.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, FailedParts, Foreign, PageTitle, Panel, ShortId, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Filters } from "../parts/filters.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

export function AuditLog() {
  const t = useTexts();
  return (
    <>
      <PageTitle title={t.nav.audit} />
      <Filters
        fields={[
          ["actor", t.by],
          ["target", t.target],
          ["service", t.service],
        ]}
      />
      <AuditRows />
    </>
  );
}

export function AuditRows({ target }: { readonly target?: string }) {
  const t = useTexts();
  const [{ actor, service, cursor, ...params }] = useQueryParams();
  const filter = { actor, service, target: target ?? params.target };
  const log = useGet<{ acts: readonly AuditAct[]; failed: readonly FailedPart[] } & Page>(
    withQuery("/v1/admin/audit-log", { ...filter, cursor }),
    { everyMs: 15_000, topics: ["audit-log"] },
  );
  return (
    <Panel>
      <Await of={log}>
        {({ acts, failed, next_cursor }) => (
          <>
            <FailedParts failed={failed} />
            {acts.length === 0 ? (
              <Empty>{Object.values(filter).some(Boolean) ? t.noHits : t.noActs}</Empty>
            ) : (
              <Acts acts={acts} />
            )}
            <Paging next={next_cursor} />
          </>
        )}
      </Await>
    </Panel>
  );
}

function Acts({ acts }: { readonly acts: readonly AuditAct[] }) {
  const t = useTexts();
  return (
    <Table
      label={t.nav.audit}
      rows={acts}
      keyOf={({ service, act_id }) => `${service} ${act_id}`}
      columns={[
        { head: t.time, cell: ({ at }) => <Time at={at} /> },
        {
          head: t.by,
          cell: ({ actor, role }) => (
            <>
              <Actor actor={actor} /> <span class="muted">{role}</span>
            </>
          ),
        },
        {
          head: t.act,
          cell: ({ act, service, undone_by }) => (
            <>
              <strong>{act}</strong> <span class="muted">{service}</span>
              {undone_by && <div class="muted">{t.undone}</div>}
            </>
          ),
        },
        {
          head: t.target,
          cell: (act) => <ShortId id={act.target} {...targetHref(act)} />,
        },
        {
          head: t.reason,
          cell: ({ reason }) => (
            <span class="wrap">
              <Foreign>{reason}</Foreign>
            </span>
          ),
        },
        {
          head: t.details,
          cell: ({ details }) =>
            Object.keys(details ?? {}).length === 0 ? (
              <span class="muted">–</span>
            ) : (
              <details>
                <summary>{t.more}</summary>
                <pre>{formatJson(details)}</pre>
              </details>
            ),
        },
        { head: t.undo, cell: (act) => <Undo act={act} /> },
      ]}
    />
  );
}

/** A dead letter is "table/id", and a whole table "table/*". Everything else is an ID. */
function targetHref({ service, act, target }: AuditAct): { readonly href?: string } {
  if (/ApiKey$/.test(act)) return { href: "/keys?state=any" };
  const [, table, id] = /^([a-z_]+)\/(.+)$/.exec(target) ?? [];
  if (table === undefined || id === undefined) return {};
  return { href: id === "*" ? path`/dead/${service}/${table}` : path`/dead/${service}/${table}/${id}` };
}

export function Actor({ actor }: { readonly actor: string }) {
  const id = /^user:(.+)$/.exec(actor)?.[1];
  if (id === undefined) return <Foreign>{actor}</Foreign>;
  return <ShortId id={id} />;
}

/** An undo is a new act with a reason of its own. What was sent cannot be unsent, so a redrive has none. */
function Undo({ act }: { readonly act: AuditAct }) {
  const t = useTexts();
  const { can } = useStaff();
  const opposite = oppositeOf(act);
  const needed = /Role$/.test(act.act) ? "ADMIN" : "OPERATOR";
  if (!opposite || act.undone_by || !can(needed)) return <span class="muted">–</span>;
  return (
    <ActButton
      class="small"
      request={{
        title: t.undoAct(act.act),
        text: act.target,
        confirm: t.undo,
        toAct: (_values, reason) => opposite(reason),
      }}
    >
      {t.undo}
    </ActButton>
  );
}
