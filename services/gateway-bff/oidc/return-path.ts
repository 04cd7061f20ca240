/**
 * The path at which a login ends: always one of our own. A link that begins on our page and ends on another site helps
 * phishing, so anything that is not clearly a path of ours becomes `/`.
 *
 * It is decided before the login and stored on the server; the browser's way back cannot change it.
 */
const home = "/";
const lengthMax = 2_048;

// Visible ASCII, because browsers percent-encode the rest; no backslash, which they read as a slash; and one slash at the
// start, because two start a host.
const pathPattern = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

// Encoded slashes, backslashes and line breaks, which a server behind us may decode, and %25, which can encode them twice.
const encodedSeparator = /%(?:2f|5c|25|[01][0-9a-f]|7f)/i;

/** A login that returned to the login would never end. */
const loginPath = /^\/log(?:in|out)(?:\/|$)/i;

export function safeReturnPath(returnTo: string | undefined, origin: string): string {
  if (returnTo === undefined || returnTo.length > lengthMax || !pathPattern.test(returnTo)) return home;
  const url = URL.parse(returnTo, origin);
  // URL.parse has resolved dots: `/..//evil` has become `//evil`.
  if (url?.origin !== origin || !pathPattern.test(url.pathname)) return home;
  if (encodedSeparator.test(url.pathname) || loginPath.test(url.pathname)) return home;
  return url.pathname + url.search;
}
