/** One player: the timeline, everything the player owns, and the acts on the player. */
import { Link } from "wouter-preact";
import { path } from "../api/request.ts";
import type { User, WhyAnswer } from "../api/types.ts";
import { ofPlayer, useGet } from "../api/use-get.ts";
import { Facts, Foreign, IdLink, PageTitle, Panel, playerHref, Tag, Time } from "../parts/basics.tsx";
import { Await } from "../parts/loaded.tsx";
import { useStaff } from "../parts/staff.ts";
import { Timeline } from "../parts/timeline.tsx";
import { useTexts } from "../texts/index.ts";
import { AuditRows } from "./audit-log.tsx";
import { PlayerActs } from "./player-acts.tsx";
import { PlayerEntitlements } from "./player-entitlements.tsx";
import { PlayerInbox } from "./player-inbox.tsx";
import { PlayerMatches, PlayerOrders, PlayerSessions } from "./player-lists.tsx";
import { PlayerPoints } from "./player-points.tsx";
import { Sentence } from "./why.tsx";

const tabs = ["timeline", "inbox", "entitlements", "points", "matches", "orders", "sessions", "audit"] as const;
type Tab = (typeof tabs)[number];

export function PlayerPage({ id, tab }: { readonly id: string; readonly tab?: string | undefined }) {
  const t = useTexts();
  const user = useGet<User>(path`/v1/users/${id}`, { everyMs: 15_000, ...ofPlayer(id) });
  const here = tabs.find((each) => each === tab) ?? "timeline";
  return (
    <>
      <PageTitle title={user.data?.display_name ?? user.data?.email ?? id}>
        {user.data && <PlayerActs user={user.data} />}
      </PageTitle>
      <Await of={user}>{(data) => <Profile user={data} />}</Await>
      <nav class="tabs" aria-label={t.partsOfPlayer}>
        {tabs.map((each) => (
          <Link
            key={each}
            href={each === "timeline" ? playerHref(id) : `${playerHref(id)}/${each}`}
            {...(each === here && { "aria-current": "page" as const })}
          >
            {t.playerTabs[each]}
          </Link>
        ))}
      </nav>
      <TabView tab={here} id={id} />
    </>
  );
}

function TabView({ tab, id }: { readonly tab: Tab; readonly id: string }) {
  switch (tab) {
    case "timeline":
      return <PlayerTimeline id={id} />;
    case "inbox":
      return <PlayerInbox id={id} />;
    case "entitlements":
      return <PlayerEntitlements id={id} />;
    case "points":
      return <PlayerPoints id={id} />;
    case "matches":
      return <PlayerMatches id={id} />;
    case "orders":
      return <PlayerOrders id={id} />;
    case "sessions":
      return <PlayerSessions id={id} />;
    case "audit":
      return <AuditRows target={id} />;
  }
}

function Profile({ user }: { readonly user: User }) {
  const t = useTexts();
  const { me } = useStaff();
  const { user_id, status, email, locale, roles, suspended_reason, suspended_until, created_at } = user;
  const staffRoles = roles.filter((role) => role !== "USER").join(", ");
  return (
    <Panel>
      <Facts
        rows={[
          [
            t.state,
            <span key="state">
              <Tag>{status}</Tag>
              {me?.user_id === user_id && ` ${t.you}`}
            </span>,
          ],
          ...(status === "SUSPENDED"
            ? [
                [
                  t.suspension,
                  <span key="suspension">
                    <Foreign>{suspended_reason}</Foreign> ·{" "}
                    {suspended_until ? (
                      <>
                        {t.until} <Time at={suspended_until} />
                      </>
                    ) : (
                      t.noEnd
                    )}
                  </span>,
                ] as const,
              ]
            : []),
          [t.email, <Foreign key="email">{email ?? "–"}</Foreign>],
          [t.id, <IdLink key="id" id={user_id} href={playerHref(user_id)} />],
          ...(staffRoles ? [[t.roles, staffRoles] as const] : []),
          ...(locale ? [[t.language, locale] as const] : []),
          [t.created, <Time key="created" at={created_at} />],
        ]}
      />
    </Panel>
  );
}

function PlayerTimeline({ id }: { readonly id: string }) {
  const t = useTexts();
  const answer = useGet<WhyAnswer>(path`/v1/admin/why/${id}`, {
    everyMs: 5_000,
    ...ofPlayer(id),
    liveEveryMs: 10_000,
  });
  return (
    <Await of={answer}>
      {(data) => (
        <>
          <Sentence answer={data} />
          <Panel title={t.timeline}>
            {/* The latest comes first, because that is what a player complains about. */}
            <Timeline entries={data.entries.toReversed()} />
            {data.truncated && <p class="muted">{t.truncated}</p>}
          </Panel>
        </>
      )}
    </Await>
  );
}
