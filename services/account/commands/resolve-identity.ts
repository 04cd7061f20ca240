/**
 * Finds or creates the user of an identity. Concurrent first logins create one user and one AccountCreated, and all return
 * the same user.
 *
 * Only provider and subject identify a user. Other claims are stored and never join two users.
 */
import { randomUUIDv7 } from "node:crypto";
import { displayNamePattern } from "@todoke/contracts/api";
import { problems, type StaffRole } from "@todoke/http";
import { type Tx, transaction } from "@todoke/kernel/db";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { type StaffIdentity, staffVariables } from "../config.ts";
import { insertRole, type ProfileChange, updateProfile } from "../store/change-users.ts";
import {
  type Claims,
  type Identity,
  type IdentityName,
  insertUser,
  selectIdentity,
  updateClaims,
} from "../store/identities.ts";
import { lockUsers, type UserView } from "../store/users.ts";
import { recordChange } from "./record-change.ts";
import type { UserActionDeps } from "./run-user-action.ts";
import { canonicalLocale } from "./update-user.ts";

export interface ResolveRequest extends IdentityName {
  readonly claims: Claims;
  /** The service that has verified the identity. */
  readonly caller: string;
}

export interface ResolveDeps extends UserActionDeps {
  /** Identities that get a staff role at every login. */
  readonly staff: readonly StaffIdentity[];
  /** Called after a user was created; wakes the relay. */
  readonly onCommitted: () => void;
}

// Another attempt follows only if the user is deleted between the insert and the read.
const attemptsMax = 3;

export function resolveIdentity({ db, outbox, staff, onCommitted }: ResolveDeps) {
  async function findOrCreate(request: ResolveRequest): Promise<Identity> {
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const identity = await selectIdentity(db, request);
      if (identity) return identity;
      if (await insertUser(db, toNewUser(request))) onCommitted();
    }
    throw problems.unavailable("this user is being deleted; try again", { retryAfterSeconds: 1 });
  }

  /** Runs `work` with the user's row locked, unless the user has been deleted since it was read. */
  const withLockedUser = (request: ResolveRequest, { user: { user_id } }: Identity, work: Work) =>
    transaction(db, async (tx) => {
      await lockUsers(tx, [user_id]);
      const identity = await selectIdentity(tx, request);
      if (identity?.user.user_id === user_id) await work(tx, identity);
    });

  async function saveClaims(tx: Tx, request: ResolveRequest, { claims, user }: Identity): Promise<void> {
    const changed = changedClaims(request.claims, claims);
    if (isEmpty(changed)) return;
    await updateClaims(tx, request, changed);
    const profile = profileChange(toProfile(changed), user);
    if (isEmpty(profile)) return;
    await updateProfile(tx, user.user_id, profile);
    await recordChange(tx, outbox, { before: user, change: { action: "UPDATE" }, actor: request.caller });
  }

  async function makeStaff(tx: Tx, role: StaffRole, { user }: Identity): Promise<void> {
    if (user.roles.includes(role)) return;
    await insertRole(tx, user.user_id, role);
    const change = { action: "GRANT_ROLE", event: "AccountRolesChanged" } as const;
    const reason = `named in ${staffVariables[role]}`;
    await recordChange(tx, outbox, { before: user, change, actor: "todoke:settings", reason });
  }

  return async (request: ResolveRequest): Promise<UserView> => {
    let identity = await findOrCreate(request);
    if (!isEmpty(changedClaims(request.claims, identity.claims))) {
      await withLockedUser(request, identity, (tx, current) => saveClaims(tx, request, current));
      identity = await findOrCreate(request);
    }
    for (const { role } of staff.filter((each) => isSame(each, request))) {
      if (identity.user.roles.includes(role)) continue;
      await withLockedUser(request, identity, (tx, current) => makeStaff(tx, role, current));
      identity = await findOrCreate(request);
    }
    return identity.user;
  };
}

type Work = (tx: Tx, identity: Identity) => Promise<void>;

const toNewUser = ({ claims, caller, provider, subject }: ResolveRequest) => ({
  provider,
  subject,
  userId: randomUUIDv7(),
  claims,
  profile: toProfile(claims),
  actor: caller,
  eventId: randomUUIDv7(),
  headers: traceHeaders(),
});

const isEmpty = (fields: object): boolean => Object.keys(fields).length === 0;

const isSame = (one: IdentityName, other: IdentityName) =>
  one.provider === other.provider && one.subject === other.subject;

/** Claims that differ from the stored ones. A claim that the provider does not send has not changed. */
function changedClaims(received: Claims, stored: Claims): Claims {
  return Object.fromEntries(
    Object.entries(received).filter(([claim, value]) => value !== undefined && stored[claim as keyof Claims] !== value),
  );
}

const displayName = new RegExp(displayNamePattern, "u");

/** The claims that a user could set in an update. Others are stored with the identity only. */
function toProfile({ email, display_name = "", locale = "" }: Claims): Claims {
  // Some providers send en_US.
  const tag = canonicalLocale(locale.replaceAll("_", "-"));
  return {
    ...(email !== undefined && { email }),
    ...(displayName.test(display_name) && { display_name }),
    ...(tag !== undefined && { locale: tag }),
  };
}

/** The e-mail address follows the provider. The user's own name and locale win once they are set. */
function profileChange({ email, display_name, locale }: Claims, user: UserView): ProfileChange {
  return {
    ...(email !== undefined && email !== user.email && { email }),
    ...(display_name !== undefined && user.display_name === undefined && { display_name }),
    ...(locale !== undefined && user.locale === undefined && { locale }),
  };
}
