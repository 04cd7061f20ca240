/** The rules of a mode, and what they do to generated players. */

import { path, withQuery } from "../api/request.ts";
import type { ModeRules, RuleSteps, Simulation } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Empty, Facts, Panel } from "../parts/basics.tsx";
import { Histogram } from "../parts/histogram.tsx";
import { Await } from "../parts/loaded.tsx";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

export function Rules() {
  const t = useTexts();
  const [{ mode }, setParams] = useQueryParams();
  const rules = useGet<{ version: string; modes: readonly ModeRules[] }>("/v1/admin/matchmaking/rules", {
    everyMs: 30_000,
  });
  return (
    <Await of={rules}>
      {({ modes, version }) => {
        const chosen = modes.find((each) => each.mode === mode) ?? modes[0];
        if (!chosen) return <Empty>{t.noModes}</Empty>;
        return (
          <Panel
            title={t.rules}
            actions={
              <label class="check">
                {t.mode}
                <select
                  name="mode"
                  value={chosen.mode}
                  onChange={({ currentTarget }) => setParams({ mode: currentTarget.value })}
                >
                  {modes.map((each) => (
                    <option key={each.mode}>{each.mode}</option>
                  ))}
                </select>
              </label>
            }
          >
            <RulesOf rules={chosen} version={version} />
            <Simulator key={chosen.mode} rules={chosen} />
          </Panel>
        );
      }}
    </Await>
  );
}

function RulesOf({ rules, version }: { readonly rules: ModeRules; readonly version: string }) {
  const t = useTexts();
  const seconds = (value: number | null) => (value === null ? "–" : t.seconds(value.toLocaleString(t.locale)));
  return (
    <>
      <Facts
        rows={[
          [t.teams, `${rules.teams} × ${rules.team_size}`],
          [t.partyMax, String(rules.party_max)],
          [t.ticketEnds, seconds(rules.ticket_seconds)],
          [t.heartbeat, seconds(rules.heartbeat_seconds)],
          [t.avoidsLast, seconds(rules.avoid_last_opponent_seconds)],
          [t.regions, rules.regions ?? "–"],
          [t.setByBackend, rules.set_by_backend.join(", ") || "–"],
          [t.version, <code key="version">{version}</code>],
        ]}
      />
      {rules.skill && <Steps label={t.skillGap} rule={rules.skill} />}
      {rules.latency && <Steps label={t.latencyMs} rule={rules.latency} />}
    </>
  );
}

function Steps({ label, rule: { attribute, steps } }: { readonly label: string; readonly rule: RuleSteps }) {
  const t = useTexts();
  return (
    <Table
      label={label}
      rows={steps}
      keyOf={({ after_seconds }) => String(after_seconds)}
      columns={[
        { head: t.afterWaiting, cell: ({ after_seconds }) => t.seconds(after_seconds.toLocaleString(t.locale)) },
        {
          head: `${label} (${attribute})`,
          align: "end",
          cell: ({ limit }) => (limit === null ? t.any : limit.toLocaleString(t.locale)),
        },
      ]}
    />
  );
}

const defaults = { players: "2000", per_minute: "1200", skill_mean: "1500", skill_deviation: "300", seed: "1" };
type Field = keyof typeof defaults;

/** What is simulated is in the address, so that a colleague sees the same. */
function Simulator({ rules }: { readonly rules: ModeRules }) {
  const t = useTexts();
  const [params, setParams] = useQueryParams();
  const isRun = params.players !== undefined;
  const names = (Object.keys(defaults) as Field[]).filter((name) => rules.skill || !name.startsWith("skill"));
  const values = Object.fromEntries(names.map((name) => [name, params[name] ?? defaults[name]]));
  const bounds: Readonly<Record<Field, readonly [number, number]>> = {
    players: [2, 10_000],
    per_minute: [1, 60_000],
    skill_mean: [-1e9, 1e9],
    skill_deviation: [0, 1e9],
    seed: [0, 2 ** 32 - 1],
  };
  return (
    <section class="simulator">
      <h3>{t.simulation}</h3>
      <p class="muted">{t.simulationMeans}</p>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          setParams({ mode: rules.mode, ...Object.fromEntries(names.map((name) => [name, String(given.get(name))])) });
        }}
      >
        {names.map((name) => (
          <label key={name}>
            {t.simulated[name]}
            <input
              type="number"
              name={name}
              required
              step={1}
              min={bounds[name][0]}
              max={bounds[name][1]}
              key={values[name]}
              defaultValue={values[name]}
            />
          </label>
        ))}
        <button type="submit" class="primary">
          {t.simulate}
        </button>
      </form>
      {isRun && <Result mode={rules.mode} query={values} />}
    </section>
  );
}

function Result({ mode, query }: { readonly mode: string; readonly query: Readonly<Record<string, string>> }) {
  const t = useTexts();
  const result = useGet<Simulation>(withQuery(path`/v1/admin/matchmaking/queues/${mode}/simulation`, query));
  return (
    <Await of={result}>
      {(simulation) => <Figures simulation={simulation} isOld={result.isPlaceholderData} t={t} />}
    </Await>
  );
}

interface FiguresProps {
  readonly simulation: Simulation;
  readonly isOld: boolean;
  readonly t: ReturnType<typeof useTexts>;
}

function Figures({ simulation, isOld, t }: FiguresProps) {
  const { tickets, matched, matches, expired, waiting_histogram, skill_gap_histogram } = simulation;
  const number = (value: number) => value.toLocaleString(t.locale, { maximumFractionDigits: 1 });
  const share = (count: number) =>
    `${number(count)} (${(count / Math.max(1, tickets)).toLocaleString(t.locale, { style: "percent", maximumFractionDigits: 1 })})`;
  const figures = [
    [t.waitingSeconds, simulation.waiting_seconds],
    [t.skillGap, simulation.skill_gap],
    [t.teamGap, simulation.team_gap],
  ].flatMap(([name, of]) => (of ? [{ name: String(name), ...(of as NonNullable<Simulation["skill_gap"]>) }] : []));
  return (
    <div aria-busy={isOld}>
      <Facts
        rows={[
          [t.matched, share(matched)],
          [t.expired, share(expired)],
          [t.matches, number(matches)],
          [t.simulatedTime, t.seconds(number(simulation.lasted_seconds))],
        ]}
      />
      {figures.length > 0 && (
        <Table
          label={t.percentiles}
          rows={figures}
          keyOf={({ name }) => name}
          columns={[
            { head: t.percentiles, cell: ({ name }) => name },
            ...(["p50", "p90", "p99"] as const).map((name) => ({
              head: name,
              align: "end" as const,
              cell: (row: (typeof figures)[number]) => number(row[name]),
            })),
            { head: t.largest, align: "end", cell: ({ max }) => number(max) },
          ]}
        />
      )}
      <div class="charts">
        {waiting_histogram.length > 0 && (
          <Histogram label={t.waitingSeconds} bars={waiting_histogram} counted={t.tickets} />
        )}
        {skill_gap_histogram.length > 0 && (
          <Histogram label={t.skillGap} bars={skill_gap_histogram} counted={t.matches} />
        )}
      </div>
    </div>
  );
}
