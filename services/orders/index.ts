/** The orders service, as the `todoke` command runs it. */
export { configFaults, dead, migrate, start } from "./main.ts";
