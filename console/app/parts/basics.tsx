/** Small parts that every page uses. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { FailedPart, Int } from "../api/types.ts";
import { useTexts } from "../texts/index.ts";

const tones: readonly (readonly [string, RegExp])[] = [
  ["good", /^(sent|done|active|published|matched|succeeded|filled|live|ready|2\d\d)$/i],
  ["bad", /^(failed|dead|suspended|deleted|aborted|blocked|revoked|halt|refused|[45]\d\d)$/i],
  ["wait", /^(pending|processing|in_flight|queued|running|waiting|retrying|unknown|sending|cancel-only|incomplete)$/i],
];

/** A state, with a colour and never by colour alone. */
export function Tag({ children }: { readonly children: string }) {
  const tone = tones.find(([, states]) => states.test(children))?.[0] ?? "plain";
  return <span class={`tag ${tone}`}>{children}</span>;
}

/** In a table the two ends of a long ID are enough; the whole is in its link. */
export function ShortId({ id, href }: { readonly id: string; readonly href?: string }) {
  const isLong = id.length > 20;
  return (
    <Link class="id short" href={href ?? whyHref(id)} title={id}>
      <bdi>{isLong ? `${id.slice(0, 8)}…${id.slice(-6)}` : id}</bdi>
    </Link>
  );
}

/** The time as it is here; in full, and in UTC, on hover. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  const { locale } = useTexts();
  if (!at) return <span class="muted">–</span>;
  const time = new Date(at);
  const isToday = time.toDateString() === new Date().toDateString();
  const text = time.toLocaleString(locale, {
    ...(!isToday && { month: "short", day: "numeric" }),
    ...(time.getFullYear() !== new Date().getFullYear() && { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  });
  return (
    <time dateTime={at} title={at}>
      {text}
    </time>
  );
}

export function Amount({ value }: { readonly value: Int | string }) {
  const { locale } = useTexts();
  return <span class="number">{typeof value === "string" ? value : value.toLocaleString(locale)}</span>;
}

export const useCount = () => {
  const { locale } = useTexts();
  return (count: number, capped: boolean) =>
    capped ? `${(10_000).toLocaleString(locale)}+` : count.toLocaleString(locale);
};

/** Text from outside: its direction stays its own. */
export const Foreign = ({ children }: { readonly children: string | null | undefined }) => <bdi>{children ?? ""}</bdi>;

/** An id that leads to what happened to it. */
export function IdLink({ id, href }: { readonly id: string; readonly href?: string }) {
  return (
    <Link class="id" href={href ?? whyHref(id)}>
      <bdi>{id}</bdi>
    </Link>
  );
}

export const whyHref = (id: string): string => `/why?id=${encodeURIComponent(id)}`;
export const playerHref = (id: string): string => `/players/${encodeURIComponent(id)}`;

export function Panel(props: {
  readonly title?: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
}) {
  const { title, actions, children, class: more = "" } = props;
  return (
    <section class={`panel ${more}`}>
      {(title || actions) && (
        <header class="panel-head">
          {title && <h2>{title}</h2>}
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export function PageTitle({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  const { product } = useTexts();
  useEffect(() => {
    document.title = `${title} · ${product}`;
  }, [title, product]);
  return (
    <div class="page-title">
      <h1>
        <bdi>{title}</bdi>
      </h1>
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

export const Empty = ({ children }: { readonly children: string }) => <p class="empty">{children}</p>;

/** Services that did not answer, above the rows of those that did. */
export function FailedParts({ failed }: { readonly failed: readonly FailedPart[] | undefined }) {
  const t = useTexts();
  if (!failed?.length) return null;
  return (
    <p class="banner warn" role="status">
      {t.failedParts(failed.map(({ service }) => service).join(", "))}
    </p>
  );
}

export function Facts({ rows }: { readonly rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Copies a text. Without a clipboard, which a page over plain http does not have, it is selected instead. */
export function Copy({ text }: { readonly text: string }) {
  const t = useTexts();
  const [copied, setCopied] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <button type="button" class="quiet small" onClick={copy}>
      {copied ? t.copied : t.copy}
    </button>
  );
}
