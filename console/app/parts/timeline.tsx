/** The timeline of an ID over the services, one line for each step. */
import { Link } from "wouter-preact";
import type { WhyEntry } from "../api/types.ts";
import { useTexts } from "../texts/index.ts";
import { Foreign, Tag, Time, whyHref } from "./basics.tsx";
import { deadLetterHref } from "./dead-letter-buttons.tsx";

export function Timeline({ entries }: { readonly entries: readonly WhyEntry[] }) {
  return (
    <ol class="timeline">
      {entries.map((entry) => (
        <Step key={`${entry.service} ${entry.kind} ${entry.id} ${entry.at} ${entry.attempt}`} entry={entry} />
      ))}
    </ol>
  );
}

/** Kinds whose ID can be searched by itself. */
const hasOwnPage: ReadonlySet<string> = new Set([
  "event",
  "notification",
  "order",
  "reservation",
  "ticket",
  "match",
  "transaction",
]);

function Step({ entry }: { readonly entry: WhyEntry }) {
  const t = useTexts();
  const { service, kind, id, at, state, attempt, process, trace_id, detail, error, next_retry_at } = entry;
  const { blocked_by, dead_letter, links } = entry;
  const look = dead_letter || blocked_by ? "bad" : error ? "warn" : "";
  return (
    <li class={look}>
      <div class="step-time">
        <Time at={at} />
      </div>
      <div class="step">
        <p class="step-head">
          {hasOwnPage.has(kind) ? (
            <Link class="strong" href={whyHref(id)}>
              {t.kinds[kind] ?? kind}
            </Link>
          ) : (
            <strong>{t.kinds[kind] ?? kind}</strong>
          )}{" "}
          <span class="muted">{service}</span> {state && <Tag>{state}</Tag>}
          {attempt !== null && attempt > 1 && <span class="muted">{t.attempt(attempt)}</span>}
          {dead_letter && <Link href={deadLetterHref(dead_letter)}>{t.openDeadLetter}</Link>}
        </p>
        {detail && (
          <p>
            <Foreign>{detail}</Foreign>
          </p>
        )}
        {error && (
          <p class="error-text">
            <Foreign>{error}</Foreign>
          </p>
        )}
        {next_retry_at && (
          <p class="muted">
            {t.nextRetry} <Time at={next_retry_at} />
          </p>
        )}
        {blocked_by && (
          <p class="error-text">
            {t.blockedBy} <Link href={whyHref(blocked_by.id)}>{`${blocked_by.kind} ${blocked_by.id}`}</Link>{" "}
            <Tag>{blocked_by.state}</Tag> <Foreign>{blocked_by.error}</Foreign>
          </p>
        )}
        <details class="more">
          <summary>{t.more}</summary>
          <ul class="plain-list">
            <li>
              {t.id}: <code>{id}</code>
            </li>
            {process && (
              <li>
                {t.process}: <Foreign>{process}</Foreign>
              </li>
            )}
            {trace_id && (
              <li>
                {t.trace}:{" "}
                <Link class="id" href={whyHref(trace_id)}>
                  {trace_id}
                </Link>
              </li>
            )}
            {links.map((link) => (
              <li key={`${link.kind} ${link.id}`}>
                {t.kinds[link.kind] ?? link.kind}:{" "}
                <Link class="id" href={whyHref(link.id)}>
                  {link.id}
                </Link>
              </li>
            ))}
          </ul>
        </details>
      </div>
    </li>
  );
}
