/** The notification service as the `todoke` command runs it. */
export { configFaults, migrate, start } from "./main.ts";
