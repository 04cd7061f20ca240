/** `todoke demo`: `todoke dev --demo`. */
import type { Command } from "../command.ts";
import { dev } from "./dev.ts";

export const demo: Command = {
  name: "demo",
  summary: "the same, with a demo shop and example data",
  usage: "todoke demo",
  details: `
Runs what \`todoke dev\` runs, with an arena shop for two players in the browser and example data for the console. The example
data is created once. It needs the embedded database and the demo users. \`todoke help dev\` lists the settings.

  DEMO_PORT                port of the shop, the gateway's pages and the console (8087)`,
  switches: {},
  takesArgs: false,
  run: ({ switches, ...call }) => dev.run({ ...call, switches: new Set([...switches, "demo"]) }),
};
