/**
 * The pages a person sees here, in English and Japanese. They need no script and nothing from elsewhere, and say what they
 * are: a place to try things out.
 */
import { hash } from "node:crypto";

/** What a page needs of a request and its answer; the library's context has it. */
interface Context {
  acceptsLanguages(...languages: string[]): string | false | string[];
  set(headers: Record<string, string>): void;
  type: string;
  body: unknown;
}

const texts = {
  en: {
    logIn: "Log in",
    about: "Todoke's provider for trying out. It runs on this machine only.",
    username: "User name",
    password: "Password",
    cancel: "Cancel",
    wrong: "User name or password is wrong.",
    busy: "Too many wrong tries at once. Wait a moment, then try again.",
    over: "This log-in is over. Start again from the page that you came from.",
    logOut: "Log out",
    logOutToo: "You have left the game. Log out here as well?",
    stay: "Stay logged in",
    loggedOut: "You are logged out.",
    failed: "That did not work",
  },
  ja: {
    logIn: "ログイン",
    about: "Todoke を試すためのログイン画面です。このコンピューターの中だけで動いています。",
    username: "ユーザー名",
    password: "パスワード",
    cancel: "キャンセル",
    wrong: "ユーザー名またはパスワードが違います。",
    busy: "間違いが続いています。少し待ってから、もう一度お試しください。",
    over: "このログインは終了しています。元のページからやり直してください。",
    logOut: "ログアウト",
    logOutToo: "ゲームからログアウトしました。ここからもログアウトしますか。",
    stay: "ログインしたままにする",
    loggedOut: "ログアウトしました。",
    failed: "うまくいきませんでした",
  },
};

type Language = keyof typeof texts;
type Text = keyof (typeof texts)["en"];

const languageOf = (ctx: Context): Language => (ctx.acceptsLanguages("en", "ja") || "en") as Language;

const style = `
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 22rem; margin: 4rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; }
label { display: block; margin-top: 1rem; }
input, button { font: inherit; padding: 0.5rem; border: 1px solid #777; border-radius: 0.3rem; }
input { width: 100%; box-sizing: border-box; }
button { margin: 1rem 0.5rem 0 0; cursor: pointer; }
button.main { background: #1a5fb4; border-color: #1a5fb4; color: #fff; }
.fault { color: #a40000; }
small { color: #666; }
`;

/**
 * No form-action: browsers hold redirects after a form to it as well, and they lead to the gateway and on to a native
 * client's own scheme, which nobody here knows. The only forms are those below, and they lead to this provider.
 */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${hash("sha256", style, "base64")}'`,
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function showLogIn(ctx: Context, fault?: "wrong" | "busy"): void {
  const t = texts[languageOf(ctx)];
  show(
    ctx,
    "logIn",
    `
    ${fault ? `<p class="fault" role="alert">${t[fault]}</p>` : ""}
    <form method="post">
      <label for="username">${t.username}</label>
      <input id="username" name="username" autocomplete="username" autocapitalize="none" maxlength="200" required autofocus>
      <label for="password">${t.password}</label>
      <input id="password" name="password" type="password" autocomplete="current-password" maxlength="200" required>
      <button type="submit" class="main">${t.logIn}</button>
      <button name="cancel" value="yes" formnovalidate>${t.cancel}</button>
    </form>`,
  );
}

/** `form` is the library's own, with what shows that the answer is to this page. */
export function showLogOut(ctx: Context, form: string): void {
  const t = texts[languageOf(ctx)];
  show(
    ctx,
    "logOut",
    `
    <p>${t.logOutToo}</p>
    ${form}
    <button type="submit" class="main" form="op.logoutForm" name="logout" value="yes" autofocus>${t.logOut}</button>
    <button form="op.logoutForm">${t.stay}</button>`,
  );
}

export const showLoggedOut = (ctx: Context): void => show(ctx, "logOut", `<p>${texts[languageOf(ctx)].loggedOut}</p>`);

export const showOver = (ctx: Context): void =>
  show(ctx, "failed", `<p class="fault" role="alert">${texts[languageOf(ctx)].over}</p>`);

/** What the protocol calls the error, for whoever sets up a client. */
export const showError = (ctx: Context, out: Readonly<Record<string, unknown>>): void =>
  show(
    ctx,
    "failed",
    Object.entries(out)
      .map(([name, value]) => `<p>${escaped(`${name}: ${value}`)}</p>`)
      .join(""),
  );

function show(ctx: Context, title: Text, body: string): void {
  const language = languageOf(ctx);
  const t = texts[language];
  ctx.set({
    "Content-Security-Policy": policy,
    "Content-Language": language,
    "Cache-Control": "no-store",
    Vary: "Accept-Language",
  });
  ctx.type = "html";
  ctx.body = `<!doctype html>
<html lang="${language}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${t[title]}</title>
    <style>${style}</style>
  </head>
  <body>
    <h1>${t[title]}</h1>
    ${body}
    <p><small>${t.about}</small></p>
  </body>
</html>
`;
}

const escaped = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
