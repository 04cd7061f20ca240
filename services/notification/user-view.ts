/** What a user gets to see of a notification, in the list and live alike: nothing of how it is sent. */
import type { UserNotification } from "./store/inbox-news.ts";

export const userView = ({ notification_id, event_type, text, data, occurred_at }: UserNotification) => ({
  notification_id,
  event_type,
  text,
  ...(data !== null && { data }),
  occurred_at,
});
