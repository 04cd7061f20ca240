/** `todoke version`. */
import type { Command } from "../command.ts";
import { say } from "../output.ts";
import manifest from "../package.json" with { type: "json" };

export const version: Command = {
  name: "version",
  summary: "say which version this is",
  usage: "todoke version",
  details: "Prints the version of todoke and of the Node it runs on.",
  switches: {},
  takesNames: false,
  async run() {
    say(`todoke ${manifest.version} (Node ${process.versions.node})`);
    return 0;
  },
};
