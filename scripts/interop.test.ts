import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { findProgram } from "./interop/peer.ts";

test("an unknown name is refused before anything is downloaded, with the names that there are", () => {
  const program = fileURLToPath(new URL("interop.ts", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, "nats", "kafka"], { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).toMatch(/^There is no kafka\. Choose from: keycloak, nats, schemathesis, .*, clusters-nats, .*\.\n$/);
});

test("a program that is missing is named, with what to install", () => {
  expect(() => findProgram("no-such-program", "Install it.")).toThrow(
    "there is no no-such-program on PATH. Install it.",
  );
});
