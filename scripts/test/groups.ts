/**
 * The test files in three groups: those that can share a process with others, those that need one for themselves, and those that
 * start processes. A file that reaches an import of node:child_process, also indirectly, may start one.
 * `npm run test:quick` leaves out the last group.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./command.ts";

const testFiles = "{packages,services,console,flows,scripts,bench,chaos,examples}/**/*.test.ts";
/** `import type` loads nothing. */
const imports = /^(?:import|export)\b(?!\s+type\b)[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\("([^"]+)"\)/gm;

/**
 * Metrics, traces and settings are once per process: files that look at them, or that draw every port, get a process each. All
 * others share a few, which load the code once instead of once per file.
 */
const onceInProcess = /metrics|telemetry|gauge|diagnostics|process\.env|Array\.from\(.*freePort/i;
const needOwnProcess = new Set([
  "packages/http/request-id.test.ts", // Ids never go back in time, also after a test with a clock that is ahead.
  "services/account/main.test.ts",
  "services/gateway-bff/oidc/whole.test.ts",
  "services/orders/routes/do-order.test.ts",
]);

export interface TestGroups {
  readonly shared: readonly string[];
  readonly apart: readonly string[];
  readonly withProcesses: readonly string[];
}

export function groupTests(): TestGroups {
  const { without: files, withProcesses } = splitByProcesses();
  const isApart = (file: string) =>
    needOwnProcess.has(file) || onceInProcess.test(readFileSync(join(root, file), "utf8"));
  return { shared: files.filter((file) => !isApart(file)), apart: files.filter(isApart), withProcesses };
}

function splitByProcesses(): { readonly without: readonly string[]; readonly withProcesses: readonly string[] } {
  const workspaces = readWorkspaces();
  const known = new Map<string, boolean>();

  function startsProcesses(file: string): boolean {
    const before = known.get(file);
    if (before !== undefined) return before;
    known.set(file, false); // Imports may go in a circle.
    const answer = importsOf(file).some((name) => {
      if (name === "node:child_process" || name === "node:cluster" || name === "node:worker_threads") return true;
      const target = resolve(file, name, workspaces);
      return target !== undefined && startsProcesses(target);
    });
    known.set(file, answer);
    return answer;
  }

  const files = globSync(testFiles, { cwd: root, exclude: (path) => path.includes("node_modules") }).sort();
  return {
    without: files.filter((file) => !startsProcesses(file)),
    withProcesses: files.filter(startsProcesses),
  };
}

function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(imports)].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "");
}

/** The file of a relative import or of an import of one of our packages; nothing for all others. */
function resolve(from: string, name: string, workspaces: ReadonlyMap<string, string>): string | undefined {
  const target = name.startsWith(".") ? join(dirname(from), name) : workspaces.get(name);
  return target?.endsWith(".ts") && existsSync(join(root, target)) ? target : undefined;
}

/** The exports of our packages, by the name that others import. */
function readWorkspaces(): ReadonlyMap<string, string> {
  const exported = new Map<string, string>();
  for (const file of globSync(["{packages,services,examples}/*/package.json", "console/package.json"], { cwd: root })) {
    const { name, exports = {} }: { name: string; exports?: Record<string, string> } = JSON.parse(
      readFileSync(join(root, file), "utf8"),
    );
    for (const [path, target] of Object.entries(exports)) exported.set(join(name, path), join(dirname(file), target));
  }
  return exported;
}
