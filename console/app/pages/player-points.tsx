/** A player's points: balance, expiring lots, reservations and transactions. */

import { path, withQuery } from "../api/request.ts";
import type { Int, Page, Reservations, Transaction } from "../api/types.ts";
import { ofPlayer, useGet } from "../api/use-get.ts";
import { Amount, Empty, Facts, Foreign, Panel, ShortId, Tag, Time } from "../parts/basics.tsx";
import { ActButton } from "../parts/dialog.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

interface Balance {
  readonly balance: Int;
  readonly held: Int;
  readonly pending?: Int;
}
interface Lot {
  readonly lot_id: string;
  readonly remaining: Int;
  readonly expires_at: string;
}

const everyMs = 5_000;

export function PlayerPoints({ id }: { readonly id: string }) {
  const t = useTexts();
  const { canActOn } = useStaff();
  const balance = useGet<Balance>(path`/v1/points/users/${id}/balance`, { everyMs, ...ofPlayer(id) });
  const lots = useGet<{ lots: readonly Lot[] }>(path`/v1/points/users/${id}/expiring`);
  return (
    <>
      <Panel title={t.balance} actions={canActOn(id) && <Adjust id={id} />}>
        <Await of={balance}>
          {(data) => (
            <Facts
              rows={[
                [
                  t.balance,
                  <strong key="balance" class="big">
                    <Amount value={data.balance} />
                  </strong>,
                ],
                [t.held, <Amount key="held" value={data.held} />],
                [t.pending, <Amount key="pending" value={data.pending ?? 0} />],
                ...(lots.data?.lots ?? []).map(
                  (lot) =>
                    [
                      t.expires,
                      <span key={lot.lot_id}>
                        <Amount value={lot.remaining} /> · <Time at={lot.expires_at} />
                      </span>,
                    ] as const,
                ),
              ]}
            />
          )}
        </Await>
      </Panel>
      <PlayerReservations id={id} />
      <Statement id={id} />
    </>
  );
}

function Adjust({ id }: { readonly id: string }) {
  const t = useTexts();
  return (
    <ActButton
      request={{
        title: t.adjustPoints,
        fields: [
          {
            name: "direction",
            label: t.act,
            options: [
              ["add", t.addPoints],
              ["spend", t.takePoints],
            ],
          },
          { name: "amount", label: t.amount, pattern: "^[1-9][0-9]{0,18}$" },
        ],
        confirm: t.adjustPoints,
        toAct: ({ direction, amount }, reason) => ({
          path: path`/v1/admin/users/${id}/point-adjustments`,
          // As text, because an amount may have more digits than a number.
          body: { direction, point_amount: amount, reason },
        }),
      }}
    >
      {t.adjustPoints}
    </ActButton>
  );
}

function PlayerReservations({ id }: { readonly id: string }) {
  const t = useTexts();
  const list = useGet<Reservations>(withQuery(path`/v1/points/users/${id}/reservations`, { limit: 10 }), {
    everyMs,
    ...ofPlayer(id),
  });
  if (!list.data?.reservations.length) return null;
  return (
    <Panel title={t.reservations}>
      <ReservationRows reservations={list.data.reservations} />
    </Panel>
  );
}

export function ReservationRows({
  reservations,
  withUser,
}: Pick<Reservations, "reservations"> & { readonly withUser?: true }) {
  const t = useTexts();
  return (
    <Table
      label={t.reservations}
      rows={reservations}
      keyOf={({ id }) => id}
      columns={[
        { head: t.id, cell: ({ id }) => <ShortId id={id} /> },
        ...(withUser ? [{ head: t.player, cell: ({ user_id }: { user_id: string }) => <ShortId id={user_id} /> }] : []),
        { head: t.amount, align: "end", cell: ({ point_amount }) => <Amount value={point_amount} /> },
        { head: t.due, cell: ({ execute_at }) => <Time at={execute_at} /> },
        { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
        {
          head: t.error,
          cell: ({ last_error }) => (
            <span class="clip">
              <Foreign>{last_error}</Foreign>
            </span>
          ),
        },
      ]}
    />
  );
}

function Statement({ id }: { readonly id: string }) {
  const t = useTexts();
  const [{ cursor }] = useQueryParams();
  const list = useGet<{ transactions: readonly Transaction[] } & Page>(
    withQuery(path`/v1/points/users/${id}/statement`, { limit: 50, cursor }),
    { everyMs, ...ofPlayer(id) },
  );
  return (
    <Panel title={t.statement}>
      <Await of={list}>
        {({ transactions, next_cursor }) => (
          <>
            {transactions.length === 0 ? (
              <Empty>{t.noTransactions}</Empty>
            ) : (
              <Table
                label={t.statement}
                rows={transactions}
                keyOf={({ transaction_id }) => transaction_id}
                columns={[
                  { head: t.time, cell: ({ created_at }) => <Time at={created_at} /> },
                  { head: t.kind, cell: ({ kind }) => kind },
                  { head: t.amount, align: "end", cell: ({ point_amount }) => <Amount value={point_amount} /> },
                  { head: t.balance, align: "end", cell: ({ balance }) => <Amount value={balance} /> },
                  {
                    head: t.reason,
                    cell: ({ reason, source, source_id }) => (
                      <span class="wrap">
                        <Foreign>{[reason, source, source_id].filter(Boolean).join(" · ")}</Foreign>
                      </span>
                    ),
                  },
                  { head: t.id, cell: ({ transaction_id }) => <ShortId id={transaction_id} /> },
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
