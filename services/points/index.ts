/** The points service as the `todoke` command runs it. */
export { configFaults, dead, events, migrate, start } from "./main.ts";
