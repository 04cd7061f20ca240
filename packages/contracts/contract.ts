/**
 * Checks the event schemas. `npm run check` fails if the committed state must not be released; `npm run generate` updates gen/
 * (code, and asyncapi.json) and proto/baseline.binpb after a change of the .proto files, unless the change breaks compatibility. Needs no network.
 *
 * The baseline is the contract as last generated. Changes are compared with it, because events of the old shape are still in
 * streams, outboxes and dead-letter tables, and today's build must read them.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { createFileRegistry, type DescMessage, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { asyncApiDocument } from "./asyncapi.ts";

const baseline = "proto/baseline.binpb";
/** The same with the comments, which asyncapi.json has. */
const commented = "commented.binpb";

/** A program in tools/, installed by `npm test` or `npm ci --prefix tools`. */
const tool = (name: string): string => fileURLToPath(new URL(`../../tools/node_modules/.bin/${name}`, import.meta.url));

const generation = {
  version: "v2",
  clean: true,
  plugins: [
    {
      local: tool("protoc-gen-es"),
      out: "gen",
      // Node runs the generated files without a build.
      opt: ["target=ts", "import_extension=ts", "erasable_syntax=true"],
    },
  ],
};

/** The message is all that is printed; buf has printed its own errors before. */
class ContractError extends Error {}

function main(command: string | undefined): void {
  buf("lint");
  buf("format", "--diff", "--exit-code");
  buf("breaking", "--against", baseline);
  const fresh = mkdtempSync(join(tmpdir(), "todoke-contract-"));
  try {
    generateInto(fresh);
    rejectAddedRequired(registry(baseline), registry(join(fresh, baseline)));
    if (command === "generate") replaceBy(fresh);
    else rejectStale(fresh);
  } finally {
    rmSync(fresh, { recursive: true });
  }
}

function buf(...args: string[]): void {
  try {
    execFileSync(tool("buf"), args, { stdio: "inherit", timeout: 60_000 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT")
      throw new ContractError("buf is not installed: run `npm ci --prefix tools`", { cause });
    throw new ContractError(`buf ${args[0]} rejects this contract`, { cause });
  }
}

function generateInto(folder: string): void {
  mkdirSync(join(folder, "proto"));
  buf("generate", "--template", JSON.stringify(generation), "--output", folder);
  buf("build", "--exclude-source-info", "--output", join(folder, baseline));
  buf("build", "--output", join(folder, commented));
  writeFileSync(
    join(folder, "gen/asyncapi.json"),
    `${JSON.stringify(asyncApiDocument(registry(join(folder, commented))), null, 2)}\n`,
  );
  rmSync(join(folder, commented));
}

/** buf allows an added required field, but old events lack it and would no longer decode. */
function rejectAddedRequired(before: FileRegistry, now: FileRegistry): void {
  for (const message of messages(before)) {
    const existing = new Set(message.fields.map((field) => field.name));
    const added = now
      .getMessage(message.typeName)
      ?.fields.find((field) => !existing.has(field.name) && !field.proto.proto3Optional);
    if (!added) continue;
    const field = `${message.name}.${added.name}`;
    throw new ContractError(`${field} was added, so it must be \`optional\`: existing events lack it`);
  }
}

const messages = (registry: FileRegistry): DescMessage[] => [...registry].filter((type) => type.kind === "message");

const registry = (image: string): FileRegistry =>
  createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(image)));

function rejectStale(fresh: string): void {
  const [committed, current] = [readGenerated("."), readGenerated(fresh)];
  const names = new Set([...committed.keys(), ...current.keys()]);
  const stale = [...names].filter((name) => committed.get(name) !== current.get(name));
  if (stale.length === 0) return;
  throw new ContractError(
    `${stale.join(", ")} ${stale.length === 1 ? "does" : "do"} not match the .proto files: run \`npm run generate --workspace packages/contracts\``,
  );
}

/** The contents of the generated files by name. */
function readGenerated(folder: string): Map<string, string> {
  const files = readdirSync(join(folder, "gen"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .concat(join(folder, baseline));
  return new Map(files.map((file) => [relative(folder, file), readFileSync(file, "base64")]));
}

function replaceBy(fresh: string): void {
  rmSync("gen", { recursive: true });
  cpSync(fresh, ".", { recursive: true });
}

try {
  main(process.argv[2]);
} catch (error) {
  if (!(error instanceof ContractError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
