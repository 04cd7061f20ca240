/** What the `todoke` command runs. */
export { configFaults, dead, migrate, start } from "./main.ts";
