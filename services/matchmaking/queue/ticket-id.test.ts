import { randomBytes } from "node:crypto";
import { ticketIdPattern } from "@todoke/contracts/api";
import fc from "fast-check";
import { expect, test } from "vitest";
import { unkeyedId } from "../testing.ts";
import { openTicketIds, parseMode } from "./ticket-id.ts";

const modes = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,31}$/);
const users = fc.string({ minLength: 1, maxLength: 128 });
const [secret, other] = [randomBytes(32), randomBytes(32)];
const ids = openTicketIds([secret]);

test("an ID contains its mode, belongs to one user and is unique", () => {
  fc.assert(
    fc.property(modes, users, users, (mode, user, another) => {
      const id = ids.create(mode, user);
      expect(id).toMatch(new RegExp(`^${ticketIdPattern}$`));
      expect(parseMode(id)).toBe(mode);
      expect(ids.isOwn(id, user)).toBe(true);
      expect(ids.isOwn(id, another)).toBe(another === user);
      expect(ids.create(mode, user)).not.toBe(id);
    }),
  );
});

test("a modified ID belongs to no user", () => {
  const id = ids.create("duel", "u_1");
  for (let at = 0; at < id.length; at++) {
    const letter = id[at] === "a" ? "b" : "a";
    expect(ids.isOwn(id.slice(0, at) + letter + id.slice(at + 1), "u_1")).toBe(false);
  }
  for (const no of ["", "duel", "duel.", id.slice(1).slice(4), `${id}x`, `../${id}`, `DUEL${id.slice(4)}`])
    expect([parseMode(no), ids.isOwn(no, "u_1")]).toEqual([undefined, false]);
});

test("an ID cannot be made without the secret", () => {
  expect(ids.isOwn(unkeyedId("duel", "u_1"), "u_1")).toBe(false);
  expect(ids.isOwn(openTicketIds([other]).create("duel", "u_1"), "u_1")).toBe(false);
  expect(ids.isOwn(openTicketIds([]).create("duel", "u_1"), "u_1")).toBe(false);
});

test("during a rotation, processes with the old and the new secret accept each other's IDs", () => {
  const [before, both, after] = [ids, openTicketIds([other, secret]), openTicketIds([other])];
  const [old, fresh] = [before.create("duel", "u_1"), both.create("duel", "u_1")];
  expect([both.isOwn(old, "u_1"), both.isOwn(fresh, "u_1")]).toEqual([true, true]);
  expect([after.isOwn(old, "u_1"), after.isOwn(fresh, "u_1")]).toEqual([false, true]);
  expect(openTicketIds([secret, other]).isOwn(fresh, "u_1")).toBe(true);
});

test("without a secret, IDs are made and none is recognized", () => {
  const none = openTicketIds([]);
  const id = none.create("duel", "u_1");
  expect(id).toMatch(new RegExp(`^${ticketIdPattern}$`));
  expect([none.isOwn(id, "u_1"), none.create("duel", "u_1") === id]).toEqual([false, false]);
});
