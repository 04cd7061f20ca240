/** The users of `npm start`. Their passwords are printed and not secret. */
import type { User } from "./users.ts";

export const demoUsers: readonly User[] = [
  {
    username: "alice",
    password: "alice-demo",
    name: "Alice Example",
    email: "alice@example.com",
    emailVerified: true,
    locale: "en",
  },
  {
    username: "bob",
    password: "bob-demo",
    name: "Bob 例",
    email: "bob@example.com",
    emailVerified: true,
    locale: "ja",
  },
  {
    username: "admin",
    password: "admin-demo",
    name: "Ada Admin",
    email: "admin@example.com",
    emailVerified: true,
    locale: "en",
  },
  {
    username: "olive",
    password: "olive-demo",
    name: "Olive Operator",
    email: "olive@example.com",
    emailVerified: true,
    locale: "en",
  },
  {
    username: "vera",
    password: "vera-demo",
    name: "Vera Viewer",
    email: "vera@example.com",
    emailVerified: true,
    locale: "en",
  },
];
