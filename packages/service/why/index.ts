/** Why something happened, or did not: what all services know about an id, as one sentence and a timeline. */
export { type FoundEntries, findEntries, type Link, type Lookup, type WhyQuestion } from "@todoke/kernel/why";
export { explainId, type WhySource } from "./explain-id.ts";
export type { Explanation, TimelineEntry } from "./explanation.ts";
export { formatLinks } from "./part-route.ts";
export { WhyParams, WhyPartView, WhyView } from "./schemas.ts";
