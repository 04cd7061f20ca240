/**
 * A real browser: the one that TEST_BROWSER names by its path, else Chromium from tools/, which `npm test` fetches where it
 * is made for the machine (Linux on x64).
 */
import { createRequire } from "node:module";
import { type BrowserContext, chromium as playwright } from "playwright-core";

export interface OpenBrowser extends AsyncDisposable {
  /** Another person at another machine: no cookie is shared. */
  person(language?: string): Promise<BrowserContext>;
}

/** Nothing where there is none: then its tests are skipped, which `npm test` tells at its end. */
export async function findBrowser(): Promise<string | undefined> {
  if (process.env.TEST_BROWSER) return process.env.TEST_BROWSER;
  return process.platform === "linux" && process.arch === "x64" ? fetchedChromium() : undefined;
}

async function fetchedChromium(): Promise<string | undefined> {
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
  // Not the arguments that the package advises: it is made for functions in a cloud, and they turn off what protects a user.
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
