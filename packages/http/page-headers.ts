/** What every page carries, whichever part shows it. Answers that are no pages have answer-headers.ts. */

// Whatever a page may load, nobody frames it, changes what its links mean, or has it send a form.
const always = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"];

/** `loads` are the directives of what the page loads; all else is refused. */
export function pageHeaders(loads: readonly string[], { referrer = "no-referrer" } = {}): Record<string, string> {
  return {
    "content-security-policy": ["default-src 'none'", ...loads, ...always].join("; "),
    "referrer-policy": referrer,
  };
}
