/**
 * Makes or finds the user whom a provider names. However many log in for the first time at once, and wherever, there is one
 * user and one AccountCreated, and all get the same answer.
 *
 * Only provider and subject say who somebody is. What else a provider says is kept up to date, and joins nothing.
 */
import { randomUUIDv7 } from "node:crypto";
import { problems } from "@todoke/http";
import { type Tx, transaction } from "@todoke/kernel/db";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { profileOf } from "../profile.ts";
import { giveAdmin, type ProfileChange, updateProfile } from "../store/change-users.ts";
import {
  type Claims,
  type IdentityName,
  insertUser,
  type KnownIdentity,
  selectIdentity,
  updateClaims,
} from "../store/identities.ts";
import { lockUsers, type UserView } from "../store/users.ts";
import type { ActDeps } from "./act-once.ts";
import { settle } from "./settle.ts";

export interface ResolveIdentity extends IdentityName {
  readonly claims: Claims;
  /** The service that vouches for it. */
  readonly caller: string;
}

export interface ResolveDeps extends ActDeps {
  /** Identities that are given the role ADMIN whenever they come. */
  readonly admins: readonly IdentityName[];
  /** Hears that a user was made: the relay's wake-up. */
  readonly onCommitted: () => void;
}

// A user who is deleted between being found and being read is looked for again; more often than this nobody is.
const triesMax = 3;

export function resolveIdentity({ db, outbox, admins, onCommitted }: ResolveDeps) {
  async function findOrMake(identity: ResolveIdentity) {
    for (let tries = 1; tries <= triesMax; tries++) {
      const known = await selectIdentity(db, identity);
      if (known) return known;
      if (await make(identity)) onCommitted();
    }
    throw problems.unavailable("this user is being deleted just now; try again", { retryAfterSeconds: 1 });
  }

  const make = ({ claims, caller, ...name }: ResolveIdentity) =>
    insertUser(db, {
      ...name,
      userId: randomUUIDv7(),
      claims,
      profile: profileOf(claims),
      actor: caller,
      eventId: randomUUIDv7(),
      headers: traceHeaders(),
    });

  /** Runs what may change the user with its row locked, on the user as it is then. */
  const locked = (identity: ResolveIdentity, { user: { user_id } }: KnownIdentity, work: Work) =>
    transaction(db, async (tx) => {
      await lockUsers(tx, [user_id]);
      const known = await selectIdentity(tx, identity);
      // Deleted meanwhile: whoever comes by this identity now is somebody new.
      if (known?.user.user_id === user_id) await work(tx, known);
    });

  async function takeOver(tx: Tx, identity: ResolveIdentity, { claims, user }: KnownIdentity): Promise<void> {
    const news = newsIn(identity.claims, claims);
    if (Object.keys(news).length === 0) return;
    await updateClaims(tx, identity, news);
    const change = profileChange(profileOf(news), user);
    if (Object.keys(change).length === 0) return;
    await updateProfile(tx, user.user_id, change);
    await settle(tx, { outbox, actor: identity.caller, done: { action: "UPDATE" }, before: user });
  }

  async function makeAdmin(tx: Tx, { user }: KnownIdentity): Promise<void> {
    if (user.roles.includes("ADMIN")) return;
    await giveAdmin(tx, user.user_id);
    const done = { action: "GRANT_ROLE", event: "AccountRolesChanged" } as const;
    await settle(tx, { outbox, actor: "todoke:settings", reason: "named in ACCOUNT_ADMINS", done, before: user });
  }

  return async (identity: ResolveIdentity): Promise<UserView> => {
    let known = await findOrMake(identity);
    if (Object.keys(newsIn(identity.claims, known.claims)).length > 0) {
      await locked(identity, known, (tx, now) => takeOver(tx, identity, now));
      known = await findOrMake(identity);
    }
    if (isAmong(admins, identity) && !known.user.roles.includes("ADMIN")) {
      await locked(identity, known, makeAdmin);
      known = await findOrMake(identity);
    }
    return known.user;
  };
}

type Work = (tx: Tx, known: KnownIdentity) => Promise<void>;

const isAmong = (admins: readonly IdentityName[], { provider, subject }: IdentityName) =>
  admins.some((admin) => admin.provider === provider && admin.subject === subject);

/** What the provider says otherwise than before. What it does not mention has not changed. */
function newsIn(told: Claims, known: Claims): Claims {
  return Object.fromEntries(
    Object.entries(told).filter(([claim, value]) => value !== undefined && known[claim as keyof Claims] !== value),
  );
}

/** The address follows the provider; name and language are the user's own once there are any. */
function profileChange({ email, display_name, locale }: Claims, user: UserView): ProfileChange {
  return {
    ...(email !== undefined && email !== user.email && { email }),
    ...(display_name !== undefined && user.display_name === undefined && { display_name }),
    ...(locale !== undefined && user.locale === undefined && { locale }),
  };
}
