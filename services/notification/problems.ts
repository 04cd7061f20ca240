/** What this service refuses. docs/errors.md lists the same (checked by a test). */
import { problem } from "@todoke/kernel/problem";

export const tooManyStreams = problem({
  code: "too-many-streams",
  status: 429,
  title: "The user has too many streams open",
});
