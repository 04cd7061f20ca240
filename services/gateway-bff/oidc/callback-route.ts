/**
 * `GET /login/callback` takes the provider's answer and opens a session.
 *
 * A log-in is taken once: an answer that comes twice, late, or in another browser opens nothing. The session is always a new
 * one, and the one that this browser had is ended, so that no token that somebody knew before is worth anything after.
 */
import { type HttpApp, ProblemView } from "@todoke/http";
import { Problem } from "@todoke/kernel/problem";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { sessionCookie } from "../guard/cookie.ts";
import { sendLanding } from "../guard/landing.ts";
import { logLogin, logSecurity } from "../security-log.ts";
import { EndedAtProvider } from "../sessions/errors.ts";
import type { NewSession } from "../sessions/index.ts";
import { tellLogin } from "../telemetry.ts";
import { bindingCookie } from "./binding-cookie.ts";
import { forBrowsers, type OidcDeps, toEnd } from "./deps.ts";
import { identityOf } from "./identity.ts";
import { type NativeClient, nativeAddress } from "./native-client.ts";
import { putNativeCode } from "./native-code.ts";
import { wantsPage } from "./problem-page.ts";
import { loginNotUnderWay, loginRefused } from "./problems.ts";
import { loggedOutMeanwhile, sessionIn, tellRefused, type UnderWay } from "./under-way.ts";

// A provider may add what it likes to its answer; what it must say is read by openid-client.
const CallbackQuery = Type.Object({ state: Type.String({ maxLength: 512 }) }, { additionalProperties: true });

/** Somebody who has come back to the browser that they left from. */
interface Arrival {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly underWay: UnderWay;
  readonly session: NewSession;
}

export function callbackRoute(app: HttpApp, deps: OidcDeps): void {
  const { provider, sessions, resolveIdentity, origin, isLoopback, onError } = deps;
  const binding = bindingCookie(isLoopback);
  const cookie = sessionCookie(isLoopback);

  async function take(request: FastifyRequest, state: string): Promise<UnderWay> {
    const underWay = (await sessions.take("login", state)) as UnderWay | undefined;
    if (!underWay) throw loginNotUnderWay("it was used, is older than ten minutes, or never began; begin again");
    if (binding.isBound(request, underWay.binding)) return underWay;
    throw loginNotUnderWay("it began in another browser, or cookies are turned off; begin again in this one");
  }

  /** Somebody who has proven who they are, and whom account and all gateways know. */
  async function newcomer(
    request: FastifyRequest,
    underWay: UnderWay & { readonly state: string },
  ): Promise<NewSession> {
    const { searchParams } = new URL(request.raw.url ?? "/", origin);
    const { claims, ...who } = await provider.finish(searchParams, underWay);
    const { userId, ...user } = await resolveIdentity(identityOf(who, claims));
    if (user.status === "DELETED") throw loginRefused("this account was deleted");
    await sessions.know({ userId, ...user });
    // A suspended user gets a session too: it is good for nothing but being told so.
    tellLogin(user.status === "SUSPENDED" ? "suspended" : "ok");
    const userAgent = request.headers["user-agent"];
    return {
      ...who,
      userId,
      client: underWay.native ? "native" : "browser",
      begunAtMs: underWay.begunAtMs,
      ...(userAgent && { userAgent }),
    };
  }

  async function openInBrowser({ request, reply, underWay, session }: Arrival) {
    const { token } = await sessions.create(session).catch((error: unknown) => {
      throw error instanceof EndedAtProvider ? loginRefused(loggedOutMeanwhile, { cause: error }) : error;
    });
    logLogin(request, session);
    const before = [underWay.previous, await sessionIn(request, { cookie, sessions })];
    await Promise.all(before.map((old) => old && sessions.end(old.userId, old.sessionId)));
    cookie.set(reply, token);
    return wantsPage(request) ? sendLanding(reply, underWay.returnTo) : reply.redirect(underWay.returnTo, 303);
  }

  /** What no problem page will tell. A refusal is no fault of ours. */
  function tellFault(cause: unknown): void {
    if (cause instanceof Problem && cause.status < 500) return;
    onError(new Error("the log-in of a native client failed", { cause }));
  }

  async function answerNative(
    request: FastifyRequest,
    native: NativeClient,
    session: Promise<NewSession>,
  ): Promise<string> {
    const outcome = await session
      .then((known) => putNativeCode(sessions, { challenge: native.challenge, session: known }))
      .then((code) => ({ code }))
      .catch((error: unknown) => ({ error }));
    if ("error" in outcome) {
      tellFault(outcome.error);
      // It ends in a redirect, which is no refusal as far as the log can see.
      logSecurity(request, "log-in refused", {
        code: outcome.error instanceof Problem ? outcome.error.code : "failed",
      });
    }
    return nativeAddress(native, outcome);
  }

  app.get(
    "/login/callback",
    {
      ...toEnd,
      ...forBrowsers,
      schema: {
        operationId: "finishLogIn",
        summary: "Takes the identity provider's answer, and opens a session",
        querystring: CallbackQuery,
        response: { 400: ProblemView, 403: ProblemView, 502: ProblemView, 503: ProblemView },
      },
    },
    async (request, reply) => {
      const { state } = request.query;
      const underWay = await take(request, state).catch(tellRefused);
      const session = newcomer(request, { ...underWay, state }).catch(tellRefused);
      if (underWay.native) return reply.redirect(await answerNative(request, underWay.native, session), 303);
      return openInBrowser({ request, reply, underWay, session: await session });
    },
  );
}
