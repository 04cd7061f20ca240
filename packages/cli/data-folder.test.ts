import { expect, test } from "vitest";
import { openShell } from "./testing/command.ts";

test("one of several concurrent starts locks the folder, also after a kill -9 of the previous one", async () => {
  await using shell = openShell("lock");
  for (const _ of ["fresh", "killed"]) {
    const all = Array.from({ length: 6 }, () => shell.start(""));
    const locked = await Promise.all(
      all.map((screen) =>
        screen.untilPrinted("locked").then(
          () => [screen],
          () => [],
        ),
      ),
    );
    const [owner, ...others] = locked.flat();
    expect(owner).toBeDefined();
    expect(others).toEqual([]);
    owner?.process.kill("SIGKILL");
    await owner?.ended;
  }
});
