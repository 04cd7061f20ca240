/** Points of all players: late reservations first, then what is due next, schedules and the last audit. */
import type { Page, Reservations as ReservationList, Schedule } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Amount, Empty, Foreign, IdLink, PageTitle, Panel, Tag, Time } from "../parts/basics.tsx";
import { LastAuditPanel } from "../parts/last-audit.tsx";
import { Await } from "../parts/loaded.tsx";
import { Table } from "../parts/table.tsx";
import { useTexts } from "../texts/index.ts";
import { ReservationRows } from "./player-points.tsx";

export function Points() {
  const t = useTexts();
  const schedules = useGet<{ schedules: readonly Schedule[] } & Page>("/v1/points/schedules?limit=100", {
    everyMs: 30_000,
  });
  return (
    <>
      <PageTitle title={t.nav.points} />
      <Reservations title={t.late} none={t.noneLate} path="/v1/admin/points/late-reservations?limit=50" />
      <Reservations title={t.upcoming} none={t.noneUpcoming} path="/v1/admin/points/upcoming-reservations?limit=20" />
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
                  { head: t.cron, cell: ({ cron }) => <code>{cron}</code> },
                  { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
                  { head: t.nextRun, cell: ({ next_run_at }) => <Time at={next_run_at} /> },
                ]}
              />
            )
          }
        </Await>
      </Panel>
      <LastAuditPanel service="points" />
    </>
  );
}

interface ReservationsProps {
  readonly title: string;
  readonly none: string;
  readonly path: string;
}

function Reservations({ title, none, path }: ReservationsProps) {
  const list = useGet<ReservationList>(path, { everyMs: 5_000 });
  return (
    <Panel title={title}>
      <Await of={list}>
        {({ reservations }) =>
          reservations.length === 0 ? <Empty>{none}</Empty> : <ReservationRows reservations={reservations} withUser />
        }
      </Await>
    </Panel>
  );
}
