/** The headers of every HTML page. Other responses have response-headers.ts. */

// No page may be framed, change its base URL, or submit a form.
const always = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"];

/** `loads` are the directives for what the page loads; everything else is blocked. */
export function pageHeaders(loads: readonly string[], { referrer = "no-referrer" } = {}): Record<string, string> {
  return {
    "content-security-policy": ["default-src 'none'", ...loads, ...always].join("; "),
    "referrer-policy": referrer,
  };
}
