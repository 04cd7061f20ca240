/** The users of the provider, and the check of their passwords. */
import { hash, randomUUID, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

export interface User {
  /** For the login page; also the subject (`sub`) of tokens, unless `subject` is set. */
  readonly username: string;
  readonly password: string;
  readonly subject?: string;
  readonly name?: string;
  readonly email?: string;
  readonly emailVerified?: boolean;
  /** BCP 47: "ja". */
  readonly locale?: string;
}

export const getSubject = ({ subject, username }: User): string => subject ?? username;

/** All claims of a user. The library omits those of scopes that were not requested. */
export function getClaims(user: User) {
  const { username, name, email, emailVerified, locale } = user;
  return {
    sub: getSubject(user),
    preferred_username: username,
    ...(name && { name }),
    ...(locale && { locale }),
    ...(email && { email, email_verified: emailVerified ?? false }),
  };
}

/** The user; `wrong` if the name or password is wrong, `busy` if too many wrong passwords are being delayed. */
export type CheckPassword = (username: string, password: string) => Promise<User | "wrong" | "busy">;

/** Wrong passwords that are delayed at once. With half a second each, this limits guessing to 40 per second. */
const delayedMax = 20;

/**
 * The response to a wrong password is delayed, so that guessing is slow. While the maximum number is delayed, no password is
 * checked, so that parallel guessing is not faster.
 */
export function createPasswordCheck(users: readonly User[], delayMs: number): CheckPassword {
  let delayed = 0;
  return async (username, password) => {
    if (delayed >= delayedMax) return "busy";
    const user = users.find((each) => each.username === username);
    const right = isEqual(password, user?.password ?? randomUUID());
    if (user && right) return user;
    delayed += 1;
    await sleep(delayMs);
    delayed -= 1;
    return "wrong";
  };
}

/** Takes the same time wherever the two differ, and for any lengths. */
const isEqual = (a: string, b: string): boolean =>
  timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
