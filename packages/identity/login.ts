/** The login page: the one step of a login that the library leaves to us. */
import type { IncomingMessage } from "node:http";
import type { InteractionResults, Provider } from "oidc-provider";
import { errors } from "./library.ts";
import { showExpiredPage, showLoginPage } from "./pages.ts";
import { type CheckPassword, getSubject } from "./users.ts";

export type Middleware = Parameters<Provider["use"]>[0];
type Context = Parameters<Middleware>[0];

const loginPath = "/log-in/";

/** The library redirects an authorization request to this URL. */
export const toLoginUrl = (_ctx: unknown, { uid }: { readonly uid: string }): string => `${loginPath}${uid}`;

export function createLoginMiddleware(provider: Provider, checkPassword: CheckPassword): Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(loginPath)) return next();
    try {
      await handleLogin(ctx, provider, checkPassword);
    } catch (error) {
      // The page has expired, was submitted twice, or belongs to another browser.
      if (!(error instanceof errors.SessionNotFound)) throw error;
      ctx.status = 400;
      showExpiredPage(ctx);
    }
  };
}

async function handleLogin(ctx: Context, provider: Provider, checkPassword: CheckPassword): Promise<void> {
  const { prompt } = await provider.interactionDetails(ctx.req, ctx.res);
  const finish = async (result: InteractionResults, mergeWithLastSubmission = false) => {
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission }));
    ctx.status = 303;
  };
  // All clients are ours, so no consent is needed.
  if (prompt.name === "consent") return finish({ consent: {} }, true);
  if (ctx.method === "GET" || ctx.method === "HEAD") return showLoginPage(ctx);
  ctx.assert(ctx.method === "POST", 405);
  ctx.assert(ctx.is("urlencoded"), 415);
  const form = await readForm(ctx.req);
  ctx.assert(form, 413);
  if (form.has("cancel")) return finish({ error: "access_denied", error_description: "the user did not log in" });
  const user = await checkPassword(form.get("username") ?? "", form.get("password") ?? "");
  if (typeof user !== "string") return finish({ login: { accountId: getSubject(user) } });
  ctx.status = user === "busy" ? 429 : 422;
  showLoginPage(ctx, user);
}

/** Twice the longest input of the page, with every character encoded as %XX%XX%XX. */
const formBytesMax = 4_096;

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > formBytesMax) return undefined;
  }
  return new URLSearchParams(text);
}
