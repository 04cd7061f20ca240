#!/usr/bin/env node
// Plain JavaScript, so that an older Node can run it: it hands over to the Node that is installed beside it.
import { spawn } from "node:child_process";
import module, { createRequire } from "node:module";

const needed = 26;
const major = Number(process.versions.node.split(".")[0]);

if (major >= needed) {
  module.enableCompileCache(); // Makes every start but the first a third faster.
  await import("./main.ts");
} else {
  const newer = findNewerNode();
  if (newer) runWith(newer);
  else {
    console.error(
      `todoke needs Node ${needed} or newer, and this is Node ${process.versions.node}.\n` +
        `npm installs it as an optional package, which is missing here: install again without --omit=optional, or use Node ${needed}.`,
    );
    process.exitCode = 1;
  }
}

/** The program of the optional package for this platform. */
function findNewerNode() {
  const { resolve } = createRequire(import.meta.url);
  const { platform, arch } = process;
  const program = platform === "win32" ? "bin/node.exe" : "bin/node";
  for (const name of [`node-${platform === "win32" ? "win" : platform}-${arch}`, `node-bin-${platform}-${arch}`])
    try {
      return resolve(`${name}/${program}`);
    } catch {} // Not this one.
  return undefined;
}

/** As if it had been started in our place: same terminal, same signals, same exit code. */
function runWith(program) {
  const child = spawn(program, process.argv.slice(1), { stdio: "inherit" });
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  process.on("SIGINT", () => {}); // A terminal sends it to both of us.
  child.on("exit", (code, signal) => {
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code ?? 1;
  });
}
