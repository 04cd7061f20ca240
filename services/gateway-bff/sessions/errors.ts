/** There is no such user, or no longer: whoever logs in is made known first. */
export class UserNotKnown extends Error {
  override readonly name = "UserNotKnown";
}

/** The provider announced the log-out of this log-in before it became a session. */
export class EndedAtProvider extends Error {
  override readonly name = "EndedAtProvider";
}
