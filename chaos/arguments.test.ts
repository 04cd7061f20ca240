import { expect, test } from "vitest";
import { readArguments } from "./arguments.ts";

test("without arguments the defaults apply", () => {
  expect(readArguments([])).toEqual({
    seed: "1",
    minutes: 1,
    buses: ["postgres", "nats", "rabbitmq"],
    rate: 80,
    faultsPerMinute: 30,
  });
});

test("arguments override the defaults", () => {
  expect(
    readArguments(["--seed", "7", "--minutes", "5", "--bus", "nats", "--rate", "120", "--out", "x"]),
  ).toMatchObject({
    seed: "7",
    minutes: 5,
    buses: ["nats"],
    rate: 120,
    out: "x",
  });
  expect(readArguments(["--planted"])).toMatchObject({ planted: "all" });
  expect(readArguments(["--planted", "no-fence"])).toMatchObject({ planted: "no-fence" });
  expect(readArguments(["--help"])).toBe("help");
});

test("all errors are reported together", () => {
  expect(readArguments(["--minutes", "soon", "--bus", "carrier", "--rate", "0"])).toHaveLength(3);
  expect(readArguments(["--sede", "7"])).toHaveLength(1);
  expect(readArguments(["nats"])).toEqual([`unexpected argument "nats"`]);
});
