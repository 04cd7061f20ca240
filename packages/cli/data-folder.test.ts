import { expect, test } from "vitest";
import { openShell } from "./testing/command.ts";

test("of many that start at once, exactly one gets the folder; after its kill -9 again exactly one", async () => {
  await using shell = openShell("hold");
  for (const _ of ["fresh", "killed"]) {
    const all = Array.from({ length: 6 }, () => shell.start(""));
    const held = await Promise.all(
      all.map((screen) =>
        screen.shows("held").then(
          () => [screen],
          () => [],
        ),
      ),
    );
    const [holder, ...others] = held.flat();
    expect(holder).toBeDefined();
    expect(others).toEqual([]);
    holder?.process.kill("SIGKILL");
    await holder?.ended;
  }
});
