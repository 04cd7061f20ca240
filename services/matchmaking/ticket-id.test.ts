import fc from "fast-check";
import { expect, test } from "vitest";
import { isOwnTicket, modeOf, newTicketId, ticketIdPattern } from "./ticket-id.ts";

const modes = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,31}$/);
const users = fc.string({ minLength: 1, maxLength: 128 });

test("an id names its mode, is its user's and nobody else's, and is never made twice", () => {
  fc.assert(
    fc.property(modes, users, users, (mode, user, other) => {
      const id = newTicketId(mode, user);
      expect(id).toMatch(new RegExp(`^${ticketIdPattern}$`));
      expect(modeOf(id)).toBe(mode);
      expect(isOwnTicket(id, user)).toBe(true);
      expect(isOwnTicket(id, other)).toBe(other === user);
      expect(newTicketId(mode, user)).not.toBe(id);
    }),
  );
});

test("an id that was changed anywhere is nobody's", () => {
  const id = newTicketId("duel", "u_1");
  for (let at = 0; at < id.length; at++) {
    const other = id[at] === "a" ? "b" : "a";
    expect(isOwnTicket(id.slice(0, at) + other + id.slice(at + 1), "u_1")).toBe(false);
  }
  for (const no of ["", "duel", "duel.", id.slice(1).slice(4), `${id}x`, `../${id}`, `DUEL${id.slice(4)}`])
    expect([modeOf(no), isOwnTicket(no, "u_1")]).toEqual([undefined, false]);
});
