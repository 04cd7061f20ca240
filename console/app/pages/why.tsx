/** What happened to an ID, and what blocks it now: the result of `todoke why` as a page. */
import { useEffect } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { path, withQuery } from "../api/request.ts";
import type { User, WhyAnswer } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { Copy, Facts, PageTitle, Panel, playerHref, Tag } from "../parts/basics.tsx";
import { DeadLetterButtons } from "../parts/dead-letter-buttons.tsx";
import { Await } from "../parts/loaded.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

export function Why() {
  const t = useTexts();
  const [{ id = "" }] = useQueryParams();
  return (
    <>
      <PageTitle title={id || t.searchAny} />
      {id && <Answer key={id} id={id} />}
    </>
  );
}

function Answer({ id }: { readonly id: string }) {
  const [, navigate] = useLocation();
  const answer = useGet<WhyAnswer>(path`/v1/admin/why/${id}`, {
    everyMs: 2_000,
    topics: [`id:${id}`],
    liveEveryMs: 5_000,
  });
  const user = answer.data?.found.find(({ kind }) => kind === "user");
  // A player has a page of its own.
  useEffect(() => {
    if (user) navigate(playerHref(user.id), { replace: true });
  }, [user?.id]);
  if (user) return null;
  return <Await of={answer}>{(data) => <WhyView answer={data} />}</Await>;
}

function WhyView({ answer }: { readonly answer: WhyAnswer }) {
  const t = useTexts();
  const { id, outcome, cure, found, entries, truncated, parts, links } = answer;
  const failed = parts.filter(({ status }) => status === "failed");
  return (
    <>
      {outcome === "unknown" && <NameSearch name={id} />}
      <Sentence answer={answer} />
      {failed.length > 0 && (
        <p class="banner warn" role="status">
          {t.failedParts(failed.map(({ service }) => service).join(", "))}
        </p>
      )}
      {found.length > 0 && (
        <Panel>
          <Facts
            rows={[
              ...found.map((each) => [`${t.is} ${each.kind}`, `${each.id} (${each.service})`] as const),
              ...(cure?.command ? [[t.inTerminal, <Command key="command" text={cure.command} />] as const] : []),
            ]}
          />
        </Panel>
      )}
      {entries.length > 0 && (
        <Panel title={t.timeline}>
          <Timeline entries={entries} />
          {truncated && <p class="muted">{t.truncated}</p>}
          {links.length > 0 && (
            <p class="muted">
              {t.goOn}{" "}
              {links.slice(0, 20).map((link) => (
                <Link key={`${link.kind} ${link.id}`} class="id" href={`/why?id=${encodeURIComponent(link.id)}`}>
                  {link.kind} {link.id}
                </Link>
              ))}
            </p>
          )}
        </Panel>
      )}
    </>
  );
}

/** The result in one sentence, with the button that cures it. */
export function Sentence({ answer }: { readonly answer: WhyAnswer }) {
  const { outcome, sentence, cure } = answer;
  return (
    <section class={`sentence ${outcome}`} aria-live="polite">
      <p>
        <Tag>{outcome}</Tag> <bdi>{sentence}</bdi>
      </p>
      {cure && (
        <div class="cure">
          <p>
            <bdi>{cure.text}</bdi>
          </p>
          {cure.dead_letter && <DeadLetterButtons target={cure.dead_letter} />}
        </div>
      )}
    </section>
  );
}

const Command = ({ text }: { readonly text: string }) => (
  <>
    <code>{text}</code> <Copy text={text} />
  </>
);

/** A text that is not an ID may be a player's name. */
function NameSearch({ name }: { readonly name: string }) {
  const t = useTexts();
  const isName = [...name].length >= 3;
  const users = useGet<{ users: readonly User[] }>(withQuery("/v1/admin/users", { name, limit: 20 }), {
    enabled: isName,
  });
  if (!isName || !users.data?.users.length) return null;
  return (
    <Panel title={t.playersNamed(name)}>
      <ul class="plain-list">
        {users.data.users.map(({ user_id, display_name, email }) => (
          <li key={user_id}>
            <Link href={playerHref(user_id)}>
              <bdi>{display_name ?? user_id}</bdi>
            </Link>{" "}
            <span class="muted">
              <bdi>{email}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
