/** SQL that formats a timestamptz as the API returns it: RFC 3339, UTC, with microseconds. */
export const rfc3339Sql = (time: string): string =>
  `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
