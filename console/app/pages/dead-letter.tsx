/** One dead letter: its error, its payload and its redrives. */
import { Link } from "wouter-preact";
import { formatJson } from "../api/json.ts";
import { path } from "../api/request.ts";
import type { DeadLetterDetail } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Copy, Empty, Facts, Foreign, IdLink, PageTitle, Panel, Tag, Time, whyHref } from "../parts/basics.tsx";
import { DeadLetterButtons } from "../parts/dead-letter-buttons.tsx";
import { Await } from "../parts/loaded.tsx";
import { useTexts } from "../texts/index.ts";

interface DeadLetterProps {
  readonly service: string;
  readonly table: string;
  readonly id: string;
}

export function DeadLetterPage({ service, table, id }: DeadLetterProps) {
  const t = useTexts();
  const letter = useGet<DeadLetterDetail>(path`/v1/admin/services/${service}/dead-letters/${table}/${id}`, {
    everyMs: 2_000,
    topics: ["dead-letters"],
    liveEveryMs: 10_000,
  });
  return (
    <>
      <PageTitle title={letter.data?.event_type ?? t.nav.dead}>
        {letter.data?.state === "dead" && <DeadLetterButtons target={{ service, table, id }} />}
      </PageTitle>
      <Await of={letter}>{(data) => <LetterView letter={data} service={service} table={table} />}</Await>
    </>
  );
}

function LetterView({
  letter,
  service,
  table,
}: { readonly letter: DeadLetterDetail } & Pick<DeadLetterProps, "service" | "table">) {
  const t = useTexts();
  const { id, state, about, attempt_count, last_error, since, payload, payload_base64, headers, redrives, discarded } =
    letter;
  return (
    <>
      <section class={`sentence ${state === "dead" ? "dead" : "done"}`} aria-live="polite">
        <p>
          <Tag>{state === "dead" ? "dead" : "done"}</Tag> {t.letterStates[state]}
        </p>
        {last_error && (
          <p class="error-text">
            <Foreign>{last_error}</Foreign>
          </p>
        )}
      </section>
      <Panel>
        <Facts
          rows={[
            [t.id, <IdLink key="id" id={id} />],
            [t.service, `${service} · ${t.tables[table] ?? table}`],
            [
              t.about,
              about && (
                <Link key="about" href={whyHref(about)}>
                  <Foreign>{about}</Foreign>
                </Link>
              ),
            ],
            [t.attempts, String(attempt_count)],
            [t.deadSince, <Time key="since" at={since} />],
            ...(discarded
              ? [
                  [t.discarded, <Foreign key="discarded">{`${discarded.by}: ${discarded.reason}`}</Foreign>] as const,
                  ...(discarded.copy_removed_at
                    ? [[t.copyRemoved, <Time key="removed" at={discarded.copy_removed_at} />] as const]
                    : []),
                ]
              : []),
          ]}
        />
        <p>
          <Link href={whyHref(id)}>{t.showTimeline}</Link>
        </p>
      </Panel>
      <Panel title={t.payload}>
        <Payload text={payload_base64 ?? (payload == null ? undefined : formatJson(payload))} />
      </Panel>
      {headers && (
        <Panel title={t.headers}>
          <Payload text={formatJson(headers)} />
        </Panel>
      )}
      {redrives.length > 0 && (
        <Panel title={t.redrives}>
          <ul class="plain-list">
            {redrives.map(({ redriven_at, redriven_by, reason, last_error: error }) => (
              <li key={redriven_at}>
                <Time at={redriven_at} /> <Foreign>{redriven_by}</Foreign>: <Foreign>{reason}</Foreign>{" "}
                {error && (
                  <span class="muted">
                    <Foreign>{error}</Foreign>
                  </span>
                )}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** Only the beginning of a large payload is shown, so that the page stays usable. */
const shownMax = 100_000;

function Payload({ text }: { readonly text: string | undefined }) {
  const t = useTexts();
  if (text === undefined) return <Empty>{t.noPayload}</Empty>;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard. */}
      <pre tabIndex={0} class="payload">
        {text.slice(0, shownMax)}
      </pre>
      {text.length > shownMax && <p class="muted">{t.cutAt(shownMax)}</p>}
      <Copy text={text} />
    </>
  );
}
