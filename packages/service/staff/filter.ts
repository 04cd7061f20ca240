/** Converts the filter of a request to that of the kernel. */
import type { DeadLetterFilter } from "@todoke/kernel/dead-letters";
import type { Filter } from "./views.ts";

export const toFilter = ({ group, event_type, error, user_id }: Filter): DeadLetterFilter => ({
  ...(group !== undefined && { group }),
  ...(event_type !== undefined && { eventType: event_type }),
  ...(error !== undefined && { error }),
  ...(user_id !== undefined && { user: user_id }),
});
