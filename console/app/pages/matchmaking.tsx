/** How long players wait, for each mode, and the rules that decide it. */

import { path } from "../api/request.ts";
import type { QueueStats } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, Facts, PageTitle, Panel } from "../parts/basics.tsx";
import { Await } from "../parts/loaded.tsx";
import { useTexts } from "../texts/index.ts";
import { Rules } from "./matchmaking-rules.tsx";

export function Matchmaking() {
  const t = useTexts();
  const queues = useGet<{ queues: readonly { mode: string; teams: number; team_size: number }[] }>(
    "/v1/matchmaking/queues",
  );
  return (
    <>
      <PageTitle title={t.nav.matchmaking} />
      <Await of={queues}>
        {({ queues: rows }) =>
          rows.length === 0 ? (
            <Empty>{t.noModes}</Empty>
          ) : (
            <div class="cards">
              {rows.map(({ mode, teams, team_size }) => (
                <Queue key={mode} mode={mode} size={`${teams} × ${team_size}`} />
              ))}
            </div>
          )
        }
      </Await>
      <Rules />
    </>
  );
}

function Queue({ mode, size }: { readonly mode: string; readonly size: string }) {
  const t = useTexts();
  const stats = useGet<QueueStats>(path`/v1/matchmaking/queues/${mode}/stats`, {
    everyMs: 2_000,
    topics: ["matchmaking"],
    liveEveryMs: 10_000,
  });
  const seconds = (value: number | undefined) =>
    value === undefined ? "–" : t.seconds(value.toLocaleString(t.locale, { maximumFractionDigits: 1 }));
  return (
    <Panel title={mode}>
      <Await of={stats}>
        {({ waiting, oldest_wait_seconds, time_to_match_seconds: time }) => (
          <Facts
            rows={[
              [
                t.waiting,
                <strong key="waiting" class="big">
                  {waiting.toLocaleString(t.locale)}
                </strong>,
              ],
              [t.oldest, seconds(oldest_wait_seconds)],
              [
                t.timeToMatch,
                time ? `${seconds(time.p50)} · p90 ${seconds(time.p90)} · p99 ${seconds(time.p99)}` : "–",
              ],
              [t.teams, size],
            ]}
          />
        )}
      </Await>
    </Panel>
  );
}
