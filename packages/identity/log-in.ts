/** Where somebody is asked who they are: the one step of a log-in that the library leaves to us. */
import type { IncomingMessage } from "node:http";
import type { InteractionResults, Provider } from "oidc-provider";
import { errors } from "./library.ts";
import { showLogIn, showOver } from "./pages.ts";
import { type CheckPassword, subjectOf } from "./users.ts";

export type Middleware = Parameters<Provider["use"]>[0];
type Context = Parameters<Middleware>[0];

const logInPath = "/log-in/";

/** The page's address, in answer to a client that sends somebody here. */
export const logInUrl = (_ctx: unknown, { uid }: { readonly uid: string }): string => `${logInPath}${uid}`;

export function logIn(provider: Provider, checkPassword: CheckPassword): Middleware {
  return async (ctx, next) => {
    if (!ctx.path.startsWith(logInPath)) return next();
    try {
      await answer(ctx, provider, checkPassword);
    } catch (error) {
      // The page was left open for too long, was sent twice, or is of another browser.
      if (!(error instanceof errors.SessionNotFound)) throw error;
      ctx.status = 400;
      showOver(ctx);
    }
  };
}

async function answer(ctx: Context, provider: Provider, checkPassword: CheckPassword): Promise<void> {
  const { prompt } = await provider.interactionDetails(ctx.req, ctx.res);
  const goOn = async (result: InteractionResults, mergeWithLastSubmission = false) => {
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission }));
    ctx.status = 303;
  };
  // Clients here are ours: their users have nothing to consent to.
  if (prompt.name === "consent") return goOn({ consent: {} }, true);
  if (ctx.method === "GET" || ctx.method === "HEAD") return showLogIn(ctx);
  ctx.assert(ctx.method === "POST", 405);
  ctx.assert(ctx.is("urlencoded"), 415);
  const form = await readForm(ctx.req);
  ctx.assert(form, 413);
  if (form.has("cancel")) return goOn({ error: "access_denied", error_description: "the user did not log in" });
  const user = await checkPassword(form.get("username") ?? "", form.get("password") ?? "");
  if (typeof user !== "string") return goOn({ login: { accountId: subjectOf(user) } });
  ctx.status = user === "busy" ? 429 : 422;
  showLogIn(ctx, user);
}

/** Twice what the page lets somebody type, with every character written as %XX%XX%XX. */
const formBytesMax = 4_096;

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > formBytesMax) return undefined;
  }
  return new URLSearchParams(text);
}
