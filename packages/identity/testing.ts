/** For tests of logins: a provider, and a minimal browser that stores cookies, follows redirects, and returns the last page. */
export { type ControlledProvider, startControlledProvider } from "./testing/controlled-provider.ts";
export { externalProvider } from "./testing/external-provider.ts";

export interface Browser {
  /**
   * Opens a page and follows redirects within its origin. A redirect to another origin is returned and not requested. A form
   * is posted to the page that it is on.
   */
  visit(url: string | URL, form?: Record<string, string>): Promise<BrowserPage>;
}

export interface BrowserPage {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly path: string;
}

const redirectsMax = 10;

export function openBrowser(headers: Record<string, string> = {}): Browser {
  // By host and not by port, as in browsers.
  const jars = new Map<string, readonly Cookie[]>();

  async function request(url: URL, form: Record<string, string> | undefined): Promise<Response> {
    const jar = jars.get(url.hostname) ?? [];
    const cookie = jar.filter(({ path }) => url.pathname.startsWith(path)).map(({ name, value }) => `${name}=${value}`);
    const response = await fetch(url, {
      headers: { accept: "text/html", ...headers, ...(cookie.length > 0 && { cookie: cookie.join("; ") }) },
      redirect: "manual",
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
    jars.set(url.hostname, response.headers.getSetCookie().map(parseCookie).reduce(updateJar, jar));
    return response;
  }

  return {
    async visit(start, form) {
      let url = new URL(start);
      let response = await request(url, form);
      for (let redirects = 0; response.headers.has("location"); redirects++) {
        if (redirects === redirectsMax) throw new Error(`${start} redirects more than ${redirectsMax} times`);
        const next = new URL(response.headers.get("location") ?? "", url);
        const leavesOrigin = next.origin !== url.origin;
        url = next;
        if (leavesOrigin) break;
        await response.body?.cancel();
        response = await request(url, undefined);
      }
      return { url, status: response.status, headers: response.headers, text: await response.text() };
    },
  };
}

function parseCookie(text: string): Cookie & { readonly expired: boolean } {
  const [pair = "", ...attributes] = text.split("; ");
  const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice(5) ?? "/";
  const expires = attributes.find((attribute) => /^expires=/i.test(attribute))?.slice(8);
  const [name = "", value = ""] = pair.split(/=(.*)/s);
  return { name, value, path, expired: expires !== undefined && Date.parse(expires) < Date.now() };
}

function updateJar(jar: readonly Cookie[], { expired, ...cookie }: ReturnType<typeof parseCookie>): readonly Cookie[] {
  const others = jar.filter(({ name, path }) => name !== cookie.name || path !== cookie.path);
  return expired ? others : [...others, cookie];
}
