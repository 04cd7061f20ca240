/** Points of all players: late reservations first, then schedules. */

import { withQuery } from "../api/request.ts";
import type { Page, Reservations, Schedule } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Amount, Empty, Foreign, IdLink, PageTitle, Panel, Tag, Time } from "../parts/basics.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";
import { ReservationRows } from "./player-points.tsx";

export function Points() {
  const t = useTexts();
  const [{ cursor }] = useQueryParams();
  const late = useGet<Reservations>(withQuery("/v1/admin/points/late-reservations", { limit: 50, cursor }), {
    everyMs: 5_000,
  });
  const schedules = useGet<{ schedules: readonly Schedule[] } & Page>("/v1/points/schedules?limit=100", {
    everyMs: 30_000,
  });
  return (
    <>
      <PageTitle title={t.nav.points} />
      <Panel title={t.late}>
        <Await of={late}>
          {({ reservations, next_cursor }) => (
            <>
              {reservations.length === 0 ? (
                <Empty>{t.noneLate}</Empty>
              ) : (
                <ReservationRows reservations={reservations} withUser />
              )}
              <Paging next={next_cursor} />
            </>
          )}
        </Await>
      </Panel>
      <Panel title={t.schedules}>
        <Await of={schedules}>
          {({ schedules: rows }) =>
            rows.length === 0 ? (
              <Empty>{t.noSchedules}</Empty>
            ) : (
              <Table
                label={t.schedules}
                rows={rows}
                keyOf={({ schedule_id }) => schedule_id}
                columns={[
                  { head: t.id, cell: ({ schedule_id }) => <IdLink id={schedule_id} /> },
                  { head: t.reason, cell: ({ reason }) => <Foreign>{reason}</Foreign> },
                  { head: t.amount, align: "end", cell: ({ point_amount }) => <Amount value={point_amount} /> },
                  { head: "cron", cell: ({ cron }) => <code>{cron}</code> },
                  { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
                  { head: t.nextRun, cell: ({ next_run_at }) => <Time at={next_run_at} /> },
                ]}
              />
            )
          }
        </Await>
      </Panel>
    </>
  );
}
