/** For tests of the edge and of what is built on it. */
export { inlineRefs } from "./inline-refs.ts";
export { post, RawConnection } from "./raw-http.ts";
export { recordTelemetry } from "./recorded.ts";
