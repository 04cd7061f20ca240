/** Players by name, e-mail or id. */
import { Link } from "wouter-preact";
import { withQuery } from "../api/request.ts";
import type { Page, User } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, Foreign, PageTitle, Panel, playerHref, Tag, Time } from "../parts/basics.tsx";
import { Filters } from "../parts/filters.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

const nameMin = 3;

export function Players() {
  const t = useTexts();
  const [{ q = "", cursor }] = useQueryParams();
  const isSearch = q.includes("@") || [...q].length >= nameMin;
  return (
    <>
      <PageTitle title={t.nav.players} />
      <Filters fields={[["q", t.nameOrEmail]]} />
      {isSearch ? <Found q={q} cursor={cursor} /> : <Empty>{t.typeAName}</Empty>}
    </>
  );
}

function Found({ q, cursor }: { readonly q: string; readonly cursor: string | undefined }) {
  const t = useTexts();
  const by = q.includes("@") ? { email: q } : /^[0-9a-f-]{36}$/.test(q) ? { user_id: q } : { name: q };
  const users = useGet<{ users: readonly User[] } & Page>(withQuery("/v1/admin/users", { ...by, limit: 50, cursor }));
  return (
    <Panel>
      <Await of={users}>
        {({ users: rows, next_cursor }) => (
          <>
            {rows.length === 0 ? (
              <Empty>{t.noHits}</Empty>
            ) : (
              <Table
                label={t.nav.players}
                rows={rows}
                keyOf={({ user_id }) => user_id}
                columns={[
                  {
                    head: t.name,
                    cell: ({ user_id, display_name }) => (
                      <Link class="strong" href={playerHref(user_id)}>
                        <Foreign>{display_name ?? user_id}</Foreign>
                      </Link>
                    ),
                  },
                  { head: t.email, cell: ({ email }) => <Foreign>{email}</Foreign> },
                  { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
                  { head: t.roles, cell: ({ roles }) => roles.filter((role) => role !== "USER").join(", ") },
                  { head: t.created, cell: ({ created_at }) => <Time at={created_at} /> },
                ]}
              />
            )}
            <Paging next={next_cursor} />
          </>
        )}
      </Await>
    </Panel>
  );
}
