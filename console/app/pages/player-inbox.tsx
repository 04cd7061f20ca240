/** A player's notifications, with the errors of those that were not sent. */

import { Link } from "wouter-preact";
import { path, withQuery } from "../api/request.ts";
import type { Notification, Page } from "../api/types.ts";
import { ofPlayer, useGet } from "../api/use-get.ts";
import { Empty, Foreign, Panel, Tag, Time, whyHref } from "../parts/basics.tsx";
import { DeadLetterButtons } from "../parts/dead-letter-buttons.tsx";
import { Await } from "../parts/loaded.tsx";
import { Paging } from "../parts/paging.tsx";
import { preferences } from "../parts/preferences.ts";
import { useStaff } from "../parts/staff.ts";
import { Table } from "../parts/table.tsx";
import { useQueryParams } from "../parts/use-query-params.ts";
import { useTexts } from "../texts/index.ts";

export function PlayerInbox({ id }: { readonly id: string }) {
  const t = useTexts();
  const { can } = useStaff();
  const { language } = preferences.get();
  const [{ cursor }] = useQueryParams();
  const list = useGet<{ notifications: readonly Notification[] } & Page>(
    withQuery(path`/v1/admin/users/${id}/notifications`, { limit: 50, cursor }),
    { everyMs: 2_000, ...ofPlayer(id) },
  );
  return (
    <Panel title={t.playerTabs.inbox}>
      <Await of={list}>
        {({ notifications, next_cursor }) => (
          <>
            {notifications.length === 0 ? (
              <Empty>{t.noNotifications}</Empty>
            ) : (
              <Table
                label={t.playerTabs.inbox}
                rows={notifications}
                keyOf={({ notification_id }) => notification_id}
                columns={[
                  {
                    head: t.notification,
                    cell: ({ notification_id, text, event_type }) => (
                      <>
                        <Link class="strong" href={whyHref(notification_id)}>
                          <Foreign>{text[language] ?? text.en}</Foreign>
                        </Link>
                        <div class="muted">{event_type}</div>
                      </>
                    ),
                  },
                  { head: t.state, cell: ({ status }) => <Tag>{status}</Tag> },
                  {
                    head: t.reason,
                    cell: ({ last_error, next_retry_at }) => (
                      <>
                        <span class="clip error-text">
                          <Foreign>{last_error}</Foreign>
                        </span>
                        {next_retry_at && (
                          <span class="muted">
                            {t.nextRetry} <Time at={next_retry_at} />
                          </span>
                        )}
                      </>
                    ),
                  },
                  { head: t.attempts, align: "end", cell: ({ attempt_count }) => attempt_count },
                  { head: t.happened, cell: ({ occurred_at }) => <Time at={occurred_at} /> },
                  { head: t.sent, cell: ({ sent_at }) => <Time at={sent_at} /> },
                  {
                    head: t.act,
                    cell: ({ status, notification_id }) =>
                      status === "FAILED" && can("OPERATOR") ? (
                        <DeadLetterButtons
                          isSmall
                          target={{ service: "notification", table: "notifications", id: notification_id }}
                        />
                      ) : (
                        <span class="muted">–</span>
                      ),
                  },
                ]}
              />
            )}
            <Paging next={next_cursor} />
          </>
        )}
      </Await>
    </Panel>
  );
}
