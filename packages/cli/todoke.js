#!/usr/bin/env node
// Plain JavaScript, so that an older Node can run it and print a useful message: it cannot run main.ts.
import module from "node:module";

const needed = 26;
const major = Number(process.versions.node.split(".")[0]);

if (major >= needed) {
  module.enableCompileCache(); // Makes every start but the first a third faster.
  await import("./main.ts");
} else {
  console.error(
    `todoke needs Node ${needed} or newer, and this is Node ${process.versions.node}.\n` +
      `\`npm ci\` installs it in node_modules: run \`npx todoke …\` or \`npm run todoke -- …\`.`,
  );
  process.exitCode = 1;
}
