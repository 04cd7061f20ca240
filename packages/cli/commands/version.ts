/** `todoke version`. */
import type { Command } from "../command.ts";
import { print } from "../output.ts";
import manifest from "../package.json" with { type: "json" };

export const version: Command = {
  name: "version",
  summary: "print the version",
  usage: "todoke version",
  details: "Prints the version of todoke and of the Node it runs on.",
  switches: {},
  takesArgs: false,
  async run() {
    print(`todoke ${manifest.version} (Node ${process.versions.node})`);
    return 0;
  },
};
