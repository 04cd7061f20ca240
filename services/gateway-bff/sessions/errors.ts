/** The ways in which a store fails that its callers tell apart. */

/** There is no such user, or no longer: whoever logs in is made known first. */
export class UserNotKnown extends Error {
  override readonly name = "UserNotKnown";
}

/**
 * The store cannot be asked just now, or did not answer. Of sessions nothing is known then: nobody is let in, and nobody is
 * told that they are logged out.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** By this the kernel's `isUnavailable` knows it: a 503, and in the inbox nothing that counts against an event. */
  readonly code = "ECONNRESET";
}
