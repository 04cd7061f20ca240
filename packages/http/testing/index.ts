/** For tests of the edge and of what is built on it. */
export { post, RawConnection } from "./raw-http.ts";
export { recordTelemetry } from "./recorded.ts";
