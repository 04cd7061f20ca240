/** The problems that need an operator, then the state of each service. */
import { Link } from "wouter-preact";
import type { Need, OverviewAnswer, Sample, ServiceOverview } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { FailedParts, Foreign, PageTitle, Panel, Tag, useCount } from "../parts/basics.tsx";
import { Await } from "../parts/loaded.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { Table } from "../parts/table.tsx";
import { useTexts } from "../texts/index.ts";

export function Overview() {
  const t = useTexts();
  const overview = useGet<OverviewAnswer>("/v1/admin/overview", {
    everyMs: 15_000,
    topics: ["overview", "dead-letters"],
  });
  return (
    <>
      <PageTitle title={t.nav.overview} />
      <Await of={overview}>
        {({ at, services, needs_you, failed }) => (
          <>
            <FailedParts failed={failed} />
            <Needs needs={needs_you} />
            <Panel title={t.services}>
              <Services services={services} at={at} />
            </Panel>
          </>
        )}
      </Await>
    </>
  );
}

function Needs({ needs }: { readonly needs: readonly Need[] }) {
  const t = useTexts();
  const formatCount = useCount();
  if (needs.length === 0) {
    return (
      <section class="all-well">
        <p>{t.nothingNeedsYou}</p>
      </section>
    );
  }
  return (
    <Panel title={t.needsYou} class="needs">
      <ul class="need-list">
        {needs.map((need) => (
          <li key={`${need.service} ${need.kind} ${need.detail}`} class={need.kind}>
            <span class="need-count number">{formatCount(need.count, need.capped)}</span>
            <div>
              <p>
                <strong>{t.needKinds[need.kind] ?? need.kind}</strong> <span class="muted">{need.service}</span>
              </p>
              <p>
                <Foreign>{need.detail}</Foreign>
              </p>
              <p class="muted">{need.cure.text}</p>
            </div>
            <Cure cure={need.cure} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Only a path of the console becomes a link. */
function Cure({ cure: { href } }: Pick<Need, "cure">) {
  const t = useTexts();
  if (!href?.startsWith("/console/")) return null;
  return (
    <Link class="button" href={href.slice("/console".length)}>
      {t.openCure}
    </Link>
  );
}

function Services({ services, at }: { readonly services: readonly ServiceOverview[]; readonly at: string }) {
  const t = useTexts();
  const spark = (
    head: string,
    pick: (sample: Sample) => number | null,
    more: { tone?: "bad"; unit?: string } = {},
  ) => ({
    head,
    cell: ({ samples }: ServiceOverview) => (
      <Sparkline
        label={head}
        values={byMinute(samples, at).map((sample) => (sample ? pick(sample) : null))}
        format={(value) => `${value.toLocaleString(t.locale, { maximumFractionDigits: 0 })}${more.unit ?? ""}`}
        {...(more.tone && { tone: more.tone })}
      />
    ),
  });
  return (
    <Table
      label={t.services}
      rows={services}
      keyOf={({ service }) => service}
      columns={[
        {
          head: t.service,
          cell: ({ service, ready, engines, processes }) => (
            <>
              <strong>{service}</strong> <Tag>{ready ? "ready" : "failed"}</Tag>
              <div class="engines">
                {processes > 0 && <span class="muted">{t.processCount(processes)}</span>}
                {engines.map(({ name, ok }) => (
                  <span key={name} class={ok ? "muted" : "error-text"}>
                    {ok ? "✓" : "✗"} {name}
                  </span>
                ))}
              </div>
            </>
          ),
        },
        spark(t.requestsPerMinute, ({ requests }) => requests),
        spark(t.errors, ({ errors }) => errors, { tone: "bad" }),
        spark(t.latency, ({ p99_ms }) => p99_ms, { unit: "ms" }),
        spark(t.backlog, ({ backlog }) => backlog),
        spark(t.oldest, ({ oldest_age_s }) => oldest_age_s, { unit: "s" }),
        spark(t.deadCount, ({ dead }) => dead, { tone: "bad" }),
      ]}
    />
  );
}

const minutes = 60;

/** A slot for each minute of the hour, empty where there is no sample. */
function byMinute(samples: readonly Sample[], at: string): readonly (Sample | undefined)[] {
  const minuteOf = (time: string) => Math.floor(Date.parse(time) / 60_000);
  const found = new Map(samples.map((sample) => [minuteOf(sample.minute), sample]));
  const last = Math.max(...found.keys(), minuteOf(at) - 1);
  return Array.from({ length: minutes }, (_, index) => found.get(last - minutes + 1 + index));
}
