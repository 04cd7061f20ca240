import { execFile } from "node:child_process";
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const here = fileURLToPath(new URL(".", import.meta.url));
const binaries = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url));
const events = "proto/todoke/events/v1/entitlement.proto";

/** A copy of the contract that a test may break, and the two commands. The empty environment shows that they need no network. */
function setup() {
  const folder = mkdtempSync(join(tmpdir(), "todoke-contract-test-"));
  for (const name of ["proto", "gen", "buf.yaml"]) {
    cpSync(join(here, name), join(folder, name), { recursive: true });
  }
  const run = (command: "check" | "generate") =>
    new Promise<{ code: unknown; output: string }>((resolve) => {
      const env = { PATH: `${binaries}${delimiter}${process.env.PATH}` };
      const options = { cwd: folder, env, timeout: 120_000 };
      execFile(join(binaries, "node"), [join(here, "contract.ts"), command], options, (error, stdout, stderr) =>
        resolve({ code: error ? error.code : 0, output: stdout + stderr }),
      );
    });
  const edit = (file: string, from: string, to: string) => {
    const text = readFileSync(join(folder, file), "utf8");
    expect(text).toContain(from);
    writeFileSync(join(folder, file), text.replace(from, to));
  };
  return { folder, run, edit, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

test("the committed contract passes", async () => {
  using contract = setup();
  expect(await contract.run("check")).toEqual({ code: 0, output: "" });
});

test("removing a field fails", async () => {
  using contract = setup();
  contract.edit(events, "  string source_id = 19;\n", "");
  const { code, output } = await contract.run("check");
  expect(code).toBe(1);
  expect(output).toContain(`Previously present field "19" with name "source_id" on message "EntitlementGranted"`);
});

test("changing the type, the number or the presence of a field fails", async () => {
  const changes = [
    ["string source_id = 19;", "int64 source_id = 19;"],
    ["string source_id = 19;", "string source_id = 21;"],
    ["  string source_id = 19;", "  optional string source_id = 19;"],
  ] as const;
  for (const [from, to] of changes) {
    using contract = setup();
    contract.edit(events, from, to);
    expect(await contract.run("generate"), to).toMatchObject({ code: 1 });
  }
});

test("an added field must be optional", async () => {
  using contract = setup();
  contract.edit(events, "  string source_id = 19;", "  string source_id = 19;\n  string gift_note = 21;");
  const { code, output } = await contract.run("generate");
  expect(code).toBe(1);
  expect(output).toContain("EntitlementGranted.gift_note was added, so it must be `optional`");

  contract.edit(events, "  string gift_note", "  optional string gift_note");
  expect(await contract.run("generate")).toMatchObject({ code: 0 });
  expect(await contract.run("check")).toEqual({ code: 0, output: "" });
});

test("a new event is part of the baseline once it is generated", async () => {
  using contract = setup();
  appendFileSync(join(contract.folder, events), "\n// A fan.\nmessage Praised {\n  string who = 16;\n}\n");
  expect(await contract.run("generate")).toMatchObject({ code: 0 });
  contract.edit(events, "string who = 16", "string whom = 16");
  expect((await contract.run("generate")).output).toContain(`Field "16" with name "whom" on message "Praised"`);
});

test("generated code that was edited, or not generated after a change, fails the check", async () => {
  using edited = setup();
  edited.edit("gen/todoke/events/v1/head_pb.ts", "version: bigint", "version: number");
  const { code, output } = await edited.run("check");
  expect(code).toBe(1);
  expect(output).toContain("head_pb.ts does not match the .proto files: run `npm run generate");

  using forgotten = setup();
  forgotten.edit(events, "  string source_id = 19;", "  string source_id = 19;\n  optional string gift_note = 21;");
  expect((await forgotten.run("check")).output).toMatch(/entitlement_pb\.ts.* do not match the \.proto files/);
});

test("an unformatted .proto file fails", async () => {
  using contract = setup();
  contract.edit(events, "  string source_id = 19;", "      string source_id = 19;");
  expect(await contract.run("check")).toMatchObject({ code: 1, output: expect.stringContaining("buf format rejects") });
});
