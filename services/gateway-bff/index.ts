/** What the `todoke` command runs. */
export { configFaults, dead, events, migrate, start } from "./main.ts";
