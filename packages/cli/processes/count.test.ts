import { expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { services } from "../services.ts";
import { countThatFit, readProcessCount } from "./count.ts";
import { spreadRoles } from "./spread-roles.ts";

const gib = 1024 ** 3;

test("auto is one process for each core, if the memory suffices", () => {
  expect(countThatFit(8, 16 * gib)).toBe(8);
  expect(countThatFit(8, 2 * gib)).toBe(4);
  expect(countThatFit(1, gib / 8)).toBe(1);
});

test("--processes is auto or a number; without it there is one process", () => {
  expect(readProcessCount(undefined)).toBe(1);
  expect(readProcessCount("3")).toBe(3);
  expect(readProcessCount("auto")).toBeGreaterThanOrEqual(1);
  for (const wrong of ["0", "-1", "2.5", "many", "", "1000"]) expect(() => readProcessCount(wrong)).toThrow(UsageError);
});

test("every process serves the API, and the first half has the other roles too", () => {
  const entries = services.filter(({ name }) => name === "entitlement" || name === "gateway-bff");
  const rolesOf = (number: number, env = {}) => spreadRoles(env, { number, count: 3, entries }).ENTITLEMENT_ROLES;
  expect([1, 2, 3].map((number) => rolesOf(number))).toEqual([undefined, undefined, "api"]);
  expect(spreadRoles({}, { number: 2, count: 2, entries }).GATEWAY_BFF_ROLES).toBe("api");
  expect([1, 2, 3].map((number) => rolesOf(number, { ENTITLEMENT_ROLES: "relay" }))).toEqual([
    "relay",
    "relay",
    "relay",
  ]);
});
