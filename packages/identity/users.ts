/** Who can log in, and how somebody shows to be one of them. */
import { hash, randomUUID, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

export interface User {
  /** What is typed into the page; also the subject (`sub`) in every token, unless `subject` says another. */
  readonly username: string;
  readonly password: string;
  readonly subject?: string;
  readonly name?: string;
  readonly email?: string;
  readonly emailVerified?: boolean;
  /** BCP 47: "ja". */
  readonly locale?: string;
}

export const subjectOf = ({ subject, username }: User): string => subject ?? username;

/** The claims of a user; those of a scope that was not asked for are left out by the library. */
export function claimsOf(user: User) {
  const { username, name, email, emailVerified, locale } = user;
  return {
    sub: subjectOf(user),
    preferred_username: username,
    ...(name && { name }),
    ...(locale && { locale }),
    ...(email && { email, email_verified: emailVerified ?? false }),
  };
}

/** Whose name and password these are; `wrong` if nobody's, `busy` if too many wrong ones are being slowed already. */
export type CheckPassword = (username: string, password: string) => Promise<User | "wrong" | "busy">;

/** Wrong answers that wait at once. With each held back for half a second, this bounds guessing to 40 a second. */
const waitingMax = 20;

/**
 * A wrong password is told after `wrongMs`, so that guessing is slow. While as many as may wait are waiting, no password is
 * looked at: whoever guesses in parallel learns nothing faster.
 */
export function passwordCheck(users: readonly User[], wrongMs: number): CheckPassword {
  let waiting = 0;
  return async (username, password) => {
    if (waiting >= waitingMax) return "busy";
    const user = users.find((each) => each.username === username);
    const right = equal(password, user?.password ?? randomUUID());
    if (user && right) return user;
    waiting += 1;
    await sleep(wrongMs);
    waiting -= 1;
    return "wrong";
  };
}

/** Takes the same time wherever the two differ, and whether or not they are of one length. */
const equal = (a: string, b: string): boolean =>
  timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
