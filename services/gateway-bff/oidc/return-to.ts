/**
 * Where a log-in ends: at a path of our own, whatever was asked for. A link that begins on our page and ends on another's
 * is what phishing is made of, so all that is not plainly a path of ours becomes `/`.
 *
 * It is decided before the log-in and kept on the server; what comes back through the browser is never asked.
 */

const home = "/";
const textMax = 2_048;

// Visible ASCII, for browsers percent-encode the rest; no backslash, which they read as a slash; one slash at the start, for
// two are the start of a host.
const plainPath = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

// What somebody behind us may decode to a slash, a backslash or a line break; %25 is how it would be hidden once more.
const disguised = /%(?:2f|5c|25|[01][0-9a-f]|7f)/i;

/** A log-in that ended at the next one would never end. */
const ofLogIn = /^\/log(?:in|out)(?:\/|$)/i;

export function ownPath(asked: string | undefined, origin: string): string {
  if (asked === undefined || asked.length > textMax || !plainPath.test(asked)) return home;
  const url = URL.parse(asked, origin);
  // Dots have been resolved by now: `/..//evil` has become `//evil`.
  if (url?.origin !== origin || !plainPath.test(url.pathname)) return home;
  if (disguised.test(url.pathname) || ofLogIn.test(url.pathname)) return home;
  return url.pathname + url.search;
}
