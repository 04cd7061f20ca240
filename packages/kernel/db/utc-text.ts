/** SQL that writes a time as the API shows it: RFC 3339, UTC, with all the microseconds that PostgreSQL keeps. */
export const utcText = (time: string): string => `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
