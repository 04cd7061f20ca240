/** What every event of an account says, in SQL over the user's row. */
export const accountEventSql = { subject: "account.events", aggregateKey: "user_id", version: "version" };
