/** SQL that formats a timestamp as a `Time` of the ledger, to the millisecond; null for infinity. */
export const timeSql = (time: string): string => `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
