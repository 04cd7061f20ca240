/**
 * Keeps the contract: `npm run check` says whether what is committed may be released, `npm run generate` takes a change
 * of the .proto files over into gen/ and proto/baseline.binpb, unless it would break somebody. Needs no network.
 *
 * The baseline is the contract as it was last generated. A change is held against it, so that an event written
 * yesterday (it is still in a stream, an outbox, a dead-letter table) can be read by what is built today.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { createFileRegistry, type DescMessage, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const baseline = "proto/baseline.binpb";

/** A program of tools/, which `npm test` fetches; by hand: `npm ci --prefix tools`. */
const tool = (name: string): string => fileURLToPath(new URL(`../../tools/node_modules/.bin/${name}`, import.meta.url));

const generation = {
  version: "v2",
  clean: true,
  plugins: [
    {
      local: tool("protoc-gen-es"),
      out: "gen",
      // Node runs the generated files as they are, so nothing in them may need compiling.
      opt: ["target=ts", "import_extension=ts", "erasable_syntax=true"],
    },
  ],
};

/** A fault of the contract, told in one sentence; buf has told its own already. */
class ContractBroken extends Error {}

function main(command: string | undefined): void {
  buf("lint");
  buf("format", "--diff", "--exit-code");
  buf("breaking", "--against", baseline);
  const fresh = mkdtempSync(join(tmpdir(), "todoke-contract-"));
  try {
    generateInto(fresh);
    refuseAddedRequired(registry(baseline), registry(join(fresh, baseline)));
    if (command === "generate") replaceBy(fresh);
    else refuseStale(fresh);
  } finally {
    rmSync(fresh, { recursive: true });
  }
}

function buf(...args: string[]): void {
  try {
    execFileSync(tool("buf"), args, { stdio: "inherit", timeout: 60_000 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT")
      throw new ContractBroken("buf is not installed: run `npm ci --prefix tools`", { cause });
    throw new ContractBroken(`buf ${args[0]} refuses this contract`, { cause });
  }
}

function generateInto(folder: string): void {
  mkdirSync(join(folder, "proto"));
  buf("generate", "--template", JSON.stringify(generation), "--output", folder);
  buf("build", "--exclude-source-info", "--output", join(folder, baseline));
}

/** buf takes this for harmless, and on the wire it is; but old events lack the field, and would no longer decode. */
function refuseAddedRequired(before: FileRegistry, now: FileRegistry): void {
  for (const message of messages(before)) {
    const known = new Set(message.fields.map((field) => field.name));
    const added = now
      .getMessage(message.typeName)
      ?.fields.find((field) => !known.has(field.name) && !field.proto.proto3Optional);
    if (!added) continue;
    const what = `${message.name}.${added.name}`;
    throw new ContractBroken(`${what} was added, so it must be \`optional\`: events of the old shape lack it`);
  }
}

const messages = (registry: FileRegistry): DescMessage[] => [...registry].filter((type) => type.kind === "message");

const registry = (image: string): FileRegistry =>
  createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(image)));

function refuseStale(fresh: string): void {
  const [committed, current] = [generated("."), generated(fresh)];
  const names = new Set([...committed.keys(), ...current.keys()]);
  const stale = [...names].find((name) => committed.get(name) !== current.get(name));
  if (!stale) return;
  throw new ContractBroken(
    `${stale} is not what the .proto files say: run \`npm run generate --workspace packages/contracts\``,
  );
}

/** Every generated file by its name, with what is in it. */
function generated(folder: string): Map<string, string> {
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
  if (!(error instanceof ContractBroken)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
