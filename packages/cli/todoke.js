#!/usr/bin/env node
// Plain JavaScript, because an older Node must be able to read it: it would stop at the first type in main.ts with a
// message about file extensions that helps nobody.
import module from "node:module";

const needed = 26;
const major = Number(process.versions.node.split(".")[0]);

if (major >= needed) {
  module.enableCompileCache(); // Every start but the first takes a third less.
  await import("./main.ts");
} else {
  console.error(
    `todoke needs Node ${needed} or newer, and this is Node ${process.versions.node}.\n` +
      `\`npm ci\` has put one into node_modules: run it as \`npx todoke …\` or \`npm run todoke -- …\`.`,
  );
  process.exitCode = 1;
}
