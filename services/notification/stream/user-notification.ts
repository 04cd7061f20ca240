/** A notification as its user sees it, in the list and in the stream: without the state of its sending. */
import type { UserNotification } from "../store/new-notifications.ts";

export const toUserNotification = ({ notification_id, event_type, text, data, occurred_at }: UserNotification) => ({
  notification_id,
  event_type,
  text,
  ...(data !== null && { data }),
  occurred_at,
});
