/** `POST /login/token`: a native client's code, once, for its session token. No cookie is set, and none is looked at. */
import { type HttpApp, ProblemView } from "@todoke/http";
import { Type } from "typebox";
import { logLogin } from "../security-log.ts";
import { EndedAtProvider } from "../sessions/errors.ts";
import { type OidcDeps, toEnd } from "./deps.ts";
import { takeNativeCode } from "./native-code.ts";
import { nativeCodeRefused } from "./problems.ts";
import { loggedOutMeanwhile } from "./under-way.ts";

const TokenView = Type.Object({
  session_token: Type.String({ description: "Send it as Authorization: Bearer; it is shown this once" }),
  token_type: Type.Literal("Bearer"),
  expires_at: Type.String({
    format: "date-time",
    description: "The end by age; a session that is not used ends sooner",
  }),
});

export function nativeTokenRoute(app: HttpApp, { sessions }: OidcDeps): void {
  app.post(
    "/login/token",
    {
      ...toEnd,
      schema: {
        operationId: "fetchSessionToken",
        summary: "A native client's session token, for the code that its log-in ended in",
        body: Type.Object({
          code: Type.String({ minLength: 1, maxLength: 128 }),
          code_verifier: Type.String({ pattern: "^[A-Za-z0-9._~-]{43,128}$", description: "RFC 7636, section 4.1" }),
        }),
        response: { 200: TokenView, 400: ProblemView },
      },
    },
    async (request) => {
      const { code, code_verifier } = request.body;
      const session = await takeNativeCode(sessions, { code, verifier: code_verifier });
      const { token, sessionId } = await sessions.create(session).catch((error: unknown) => {
        throw error instanceof EndedAtProvider ? nativeCodeRefused(loggedOutMeanwhile, { cause: error }) : error;
      });
      logLogin(request, session);
      const own = (await sessions.list(session.userId)).find((each) => each.sessionId === sessionId);
      if (!own) throw new Error("a session ended while it was made");
      return { session_token: token, token_type: "Bearer" as const, expires_at: own.endsAt };
    },
  );
}
