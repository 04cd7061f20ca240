/** The problems that only this service returns. Clients depend on the codes: they never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const tooManyStreams = problem(429, "too-many-streams", "The user has too many streams open");
