/** The user does not exist or is deleted. A login saves its user before it creates a session. */
export class UnknownUserError extends Error {
  override readonly name = "UnknownUserError";
}

/** The provider announced the logout of this login before its session was created. */
export class EndedAtProviderError extends Error {
  override readonly name = "EndedAtProviderError";
}
