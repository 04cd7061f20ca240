/** Programs that the API reference shows for the client: compiled, and run as they are shown. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export interface Program {
  /** For the name of its file. */
  readonly name: string;
  readonly source: string;
}

export interface RunnableProgram extends Program {
  readonly env: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const modules = fileURLToPath(new URL("../node_modules", import.meta.url));

/** A project whose packages are those of this repository. */
export function createProject() {
  const folder = mkdtempSync(join(tmpdir(), "todoke-samples-"));
  symlinkSync(modules, join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  mkdirSync(join(folder, "src"));

  /** What the compiler finds wrong, in strict mode. */
  async function compile(programs: readonly Program[]): Promise<string> {
    for (const { name, source } of programs) writeFileSync(join(folder, "src", `${name}.ts`), source);
    const compilerOptions = {
      ...{ module: "nodenext", target: "esnext", lib: ["esnext", "dom"], types: ["node"] },
      ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true, allowImportingTsExtensions: true },
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
    const compiler = join(modules, ".bin/tsc");
    return await run(compiler, ["-p", folder]).then(
      () => "",
      ({ stdout }: { stdout: string }) => stdout,
    );
  }

  /** Runs them one after the other in one process. Returns the error of each that fails. */
  async function runAll(programs: readonly RunnableProgram[]): Promise<string[]> {
    for (const { name, source } of programs) writeFileSync(join(folder, "src", `${name}.ts`), source);
    const steps = programs.map(({ name, env }) => ({ name, env }));
    const main = `console.log = () => {};
      for (const { name, env } of ${JSON.stringify(steps)}) {
        Object.assign(process.env, env);
        await import(\`./src/\${name}.ts\`).catch((error) => console.error(\`\${name}: \${error}\`));
      }`;
    writeFileSync(join(folder, "main.js"), main);
    const { stderr } = await run(process.execPath, [join(folder, "main.js")]);
    return stderr.split("\n").filter((line) => line !== "");
  }

  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  return { compile, runAll, [Symbol.dispose]: remove };
}
