/** There is no such user, or no longer: whoever logs in is made known first. */
export class UserNotKnown extends Error {
  override readonly name = "UserNotKnown";
}
