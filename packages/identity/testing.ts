/** As much of a browser as a log-in needs, for tests: it keeps cookies and follows redirects, and shows where it ends. */

export interface Browser {
  /**
   * Opens a page and follows where it leads, but not to another origin: that is where it ends then, unasked. A form is
   * sent as a browser would, to the page that it is on.
   */
  visit(url: string | URL, form?: Record<string, string>): Promise<Arrival>;
}

export interface Arrival {
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
  // By host and not by port, as browsers keep them.
  const jars = new Map<string, readonly Cookie[]>();

  async function ask(url: URL, form: Record<string, string> | undefined): Promise<Response> {
    const jar = jars.get(url.hostname) ?? [];
    const cookie = jar.filter(({ path }) => url.pathname.startsWith(path)).map(({ name, value }) => `${name}=${value}`);
    const response = await fetch(url, {
      headers: { accept: "text/html", ...headers, ...(cookie.length > 0 && { cookie: cookie.join("; ") }) },
      redirect: "manual",
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
    jars.set(url.hostname, response.headers.getSetCookie().map(parsed).reduce(kept, jar));
    return response;
  }

  return {
    async visit(start, form) {
      let url = new URL(start);
      let response = await ask(url, form);
      for (let redirects = 0; response.headers.has("location"); redirects++) {
        if (redirects === redirectsMax) throw new Error(`${start} leads from page to page without an end`);
        const next = new URL(response.headers.get("location") ?? "", url);
        const leaves = next.origin !== url.origin;
        url = next;
        if (leaves) break;
        await response.body?.cancel();
        response = await ask(url, undefined);
      }
      return { url, status: response.status, headers: response.headers, text: await response.text() };
    },
  };
}

function parsed(text: string): Cookie & { readonly over: boolean } {
  const [pair = "", ...attributes] = text.split("; ");
  const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice(5) ?? "/";
  const expires = attributes.find((attribute) => /^expires=/i.test(attribute))?.slice(8);
  const [name = "", value = ""] = pair.split(/=(.*)/s);
  return { name, value, path, over: expires !== undefined && Date.parse(expires) < Date.now() };
}

function kept(jar: readonly Cookie[], { over, ...cookie }: ReturnType<typeof parsed>): readonly Cookie[] {
  const others = jar.filter(({ name, path }) => name !== cookie.name || path !== cookie.path);
  return over ? others : [...others, cookie];
}
