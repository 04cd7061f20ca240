/** Times between the ledger and PostgreSQL: to the millisecond, as text (ledger/account.ts). */

/** SQL that writes a time as the ledger has it; null for infinity. */
export const timeText = (time: string): string =>
  `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
