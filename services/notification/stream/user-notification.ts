/** What a user gets to see of a notification, in the list and live alike: nothing of how it is sent. */
import type { UserNotification } from "../store/new-notifications.ts";

export const toUserNotification = ({ notification_id, event_type, text, data, occurred_at }: UserNotification) => ({
  notification_id,
  event_type,
  text,
  ...(data !== null && { data }),
  occurred_at,
});
