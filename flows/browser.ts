/** A real browser: the executable in TEST_BROWSER, or the Chromium of tools/, which exists for Linux on x64. */
import { createRequire } from "node:module";
import { type BrowserContext, chromium as playwright } from "playwright-core";

export interface OpenBrowser extends AsyncDisposable {
  /** A new browser context, which shares no cookies with others. */
  person(language?: string): Promise<BrowserContext>;
}

/** Returns undefined if there is no browser; then its tests are skipped, and `npm test` says so. */
export async function findBrowser(): Promise<string | undefined> {
  if (process.env.TEST_BROWSER) return process.env.TEST_BROWSER;
  return process.platform === "linux" && process.arch === "x64" ? bundledChromium() : undefined;
}

async function bundledChromium(): Promise<string | undefined> {
  const tools = createRequire(new URL("../tools/package.json", import.meta.url));
  try {
    const chromium: { default: { executablePath(): Promise<string> } } = await import(
      tools.resolve("@sparticuz/chromium")
    );
    return await chromium.default.executablePath();
  } catch {
    return undefined;
  }
}

export async function openBrowser(executablePath: string): Promise<OpenBrowser> {
  // Not the package's own arguments: they are made for cloud functions and turn off protections of the user.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = await playwright.launch({ executablePath, args, headless: true });
  return {
    async person(language = "en-GB") {
      const context = await browser.newContext({ locale: language });
      context.setDefaultTimeout(60_000); // On a busy machine.
      return context;
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
