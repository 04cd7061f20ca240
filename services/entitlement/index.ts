/** The entitlement service as the `todoke` command runs it. */
export { configErrors, dead, events, migrate, start } from "./main.ts";
