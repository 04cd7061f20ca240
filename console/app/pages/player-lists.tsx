/** A player's tickets, orders and sessions. */

import { path, withQuery } from "../api/request.ts";
import type { ListedSession, OrderList, Page, Ticket } from "../api/types.ts";
import { ofPlayer, useGet } from "../api/use-get.ts";
import { Empty, Foreign, Panel, ShortId, Tag, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";
import { OrderRows } from "./orders.tsx";

interface PlayerProps {
  readonly id: string;
}

export function PlayerMatches({ id }: PlayerProps) {
  const t = useTexts();
  const [{ cursor }] = useQueryParams();
  const list = useGet<{ tickets: readonly Ticket[] } & Page>(
    withQuery(path`/v1/admin/users/${id}/tickets`, { limit: 50, cursor }),
    { everyMs: 5_000, ...ofPlayer(id) },
  );
  return (
    <Panel title={t.playerTabs.matches}>
      <Await of={list}>
        {({ tickets, next_cursor }) => (
          <>
            {tickets.length === 0 ? (
              <Empty>{t.noTickets}</Empty>
            ) : (
              <Table
                label={t.playerTabs.matches}
                rows={tickets}
                keyOf={({ ticket_id }) => ticket_id}
                columns={[
                  { head: t.ticket, cell: ({ ticket_id }) => <ShortId id={ticket_id} /> },
                  { head: t.mode, cell: ({ mode }) => mode },
                  { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
                  {
                    head: t.match,
                    cell: ({ match_id, reason }) =>
                      match_id ? <ShortId id={match_id} /> : <Foreign>{reason}</Foreign>,
                  },
                  { head: t.started, cell: ({ joined_at }) => <Time at={joined_at} /> },
                  { head: t.ended, cell: ({ matched_at, ended_at }) => <Time at={matched_at ?? ended_at} /> },
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

export function PlayerOrders({ id }: PlayerProps) {
  const t = useTexts();
  const [{ cursor }] = useQueryParams();
  const list = useGet<OrderList>(withQuery("/v1/orders", { user_id: id, limit: 50, cursor }), {
    everyMs: 5_000,
    ...ofPlayer(id),
  });
  return (
    <Panel title={t.playerTabs.orders}>
      <Await of={list}>
        {({ orders, next_cursor }) => (
          <>
            {orders.length === 0 ? <Empty>{t.noOrders}</Empty> : <OrderRows orders={orders} />}
            <Paging next={next_cursor} />
          </>
        )}
      </Await>
    </Panel>
  );
}

export function PlayerSessions({ id }: PlayerProps) {
  const t = useTexts();
  const { canActOn } = useStaff();
  const list = useGet<{ sessions: readonly ListedSession[] }>(path`/v1/admin/users/${id}/sessions`, {
    everyMs: 15_000,
    ...ofPlayer(id),
  });
  const end = (sessionId?: string) => ({
    title: sessionId ? t.endSession : t.endAllSessions,
    text: t.endMeans,
    confirm: t.end,
    isDangerous: true,
    toAct: (_values: object, reason: string) => ({
      path: `${path`/v1/admin/users/${id}/sessions`}:end`,
      body: { reason, ...(sessionId && { session_id: sessionId }) },
    }),
  });
  return (
    <Panel
      title={t.playerTabs.sessions}
      actions={
        canActOn(id) &&
        (list.data?.sessions.length ?? 0) > 0 && <ActButton request={end()}>{t.endAllSessions}</ActButton>
      }
    >
      <Await of={list}>
        {({ sessions }) =>
          sessions.length === 0 ? (
            <Empty>{t.noSessions}</Empty>
          ) : (
            <Table
              label={t.playerTabs.sessions}
              rows={sessions}
              keyOf={({ session_id }) => session_id}
              columns={[
                {
                  head: t.client,
                  cell: ({ client, user_agent }) => (
                    <span class="clip">
                      <Foreign>{user_agent ?? client}</Foreign>
                    </span>
                  ),
                },
                { head: t.started, cell: ({ created_at }) => <Time at={created_at} /> },
                { head: t.lastSeen, cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
                { head: t.ends, cell: ({ ends_at }) => <Time at={ends_at} /> },
                {
                  head: t.act,
                  cell: ({ session_id }) =>
                    canActOn(id) ? (
                      <ActButton class="small" request={end(session_id)}>
                        {t.end}
                      </ActButton>
                    ) : (
                      <span class="muted">–</span>
                    ),
                },
              ]}
            />
          )
        }
      </Await>
    </Panel>
  );
}
