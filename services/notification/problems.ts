/** The problems that only this service returns. Clients depend on the codes: they never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const tooManyStreams = problem({
  code: "too-many-streams",
  status: 429,
  title: "The user has too many streams open",
});
