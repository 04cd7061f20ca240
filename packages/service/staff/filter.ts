/** The filter of dead letters, as requests spell it. */
import type { DeadLetterFilter } from "@todoke/kernel/dead-letters";
import type { Filter } from "./views.ts";

export const toFilter = ({ group, event_type, error, user_id }: Filter): DeadLetterFilter => ({
  ...(group !== undefined && { group }),
  ...(event_type !== undefined && { eventType: event_type }),
  ...(error !== undefined && { error }),
  ...(user_id !== undefined && { user: user_id }),
});
