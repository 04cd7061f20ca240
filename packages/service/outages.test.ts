import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { watchOutages } from "./outages.ts";

test("an error of a shared connection is logged once while the server responds, another kind of error at once", async () => {
  const [logged, probe] = [[] as unknown[], async () => {}];
  const log = {
    info: (_: object, text: string) => logged.push(text),
    warn: (_: object, text: string) => logged.push(text),
  };
  const options = { url: "postgres://u:p@127.0.0.1:1/x", log, probe, onError: (error: unknown) => logged.push(error) };
  using one = watchOutages({ ...options });
  using other = watchOutages({ ...options });
  const shared = new Error("Connection terminated");
  for (const watch of [one, other, one]) watch.onError(shared);
  await until("it is logged", () => logged.length > 0);
  const ours = new Error("a bug");
  other.onError(ours);
  expect(logged).toEqual([shared, ours]);
  expect(one.isDown).toBe(false);
});
