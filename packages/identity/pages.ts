/**
 * The pages of the provider, in English and Japanese. They load no script and no other resource, and say that the provider
 * is a demo.
 */
import { hash } from "node:crypto";

/** The part of the library's request context that a page uses. */
interface Context {
  acceptsLanguages(...languages: string[]): string | false | string[];
  set(headers: Record<string, string>): void;
  type: string;
  body: unknown;
}

const texts = {
  en: {
    logIn: "Log in",
    footer: "Demo login of Todoke. It runs on this machine only.",
    username: "User name",
    password: "Password",
    cancel: "Cancel",
    wrong: "The user name or the password is wrong.",
    busy: "Too many wrong passwords. Wait a moment and try again.",
    expired: "This login has expired. Go back to the page that you came from and start again.",
    logOut: "Log out",
    logOutToo: "You have logged out of the game. Log out here as well?",
    stay: "Stay logged in",
    loggedOut: "You are logged out.",
    failed: "Something went wrong",
  },
  ja: {
    logIn: "ログイン",
    footer: "Todoke を試すためのログイン画面です。このコンピューターの中だけで動いています。",
    username: "ユーザー名",
    password: "パスワード",
    cancel: "キャンセル",
    wrong: "ユーザー名またはパスワードが違います。",
    busy: "間違いが続いています。少し待ってから、もう一度お試しください。",
    expired: "このログインは終了しています。元のページからやり直してください。",
    logOut: "ログアウト",
    logOutToo: "ゲームからログアウトしました。ここからもログアウトしますか。",
    stay: "ログインしたままにする",
    loggedOut: "ログアウトしました。",
    failed: "うまくいきませんでした",
  },
};

type Language = keyof typeof texts;
type Text = keyof (typeof texts)["en"];

const getLanguage = (ctx: Context): Language => (ctx.acceptsLanguages("en", "ja") || "en") as Language;

const style = `
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 22rem; margin: 4rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; }
label { display: block; margin-top: 1rem; }
input, button { font: inherit; padding: 0.5rem; border: 1px solid #777; border-radius: 0.3rem; }
input { width: 100%; box-sizing: border-box; }
button { margin: 1rem 0.5rem 0 0; cursor: pointer; }
button.main { background: #1a5fb4; border-color: #1a5fb4; color: #fff; }
.error { color: #a40000; }
small { color: #666; }
`;

/**
 * No form-action: browsers also apply it to the redirects after a form. These lead to the gateway and on to the custom scheme
 * of a native client, which is not known here. The forms below lead to this provider.
 */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${hash("sha256", style, "base64")}'`,
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function showLoginPage(ctx: Context, error?: "wrong" | "busy"): void {
  const t = texts[getLanguage(ctx)];
  renderPage(
    ctx,
    "logIn",
    `
    ${error ? `<p class="error" role="alert">${t[error]}</p>` : ""}
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

/** `form` comes from the library and contains its CSRF token. */
export function showLogoutPage(ctx: Context, form: string): void {
  const t = texts[getLanguage(ctx)];
  renderPage(
    ctx,
    "logOut",
    `
    <p>${t.logOutToo}</p>
    ${form}
    <button type="submit" class="main" form="op.logoutForm" name="logout" value="yes" autofocus>${t.logOut}</button>
    <button form="op.logoutForm">${t.stay}</button>`,
  );
}

export const showLoggedOutPage = (ctx: Context): void =>
  renderPage(ctx, "logOut", `<p>${texts[getLanguage(ctx)].loggedOut}</p>`);

export const showExpiredPage = (ctx: Context): void =>
  renderPage(ctx, "failed", `<p class="error" role="alert">${texts[getLanguage(ctx)].expired}</p>`);

/** The error of the protocol, for developers of clients. */
export const showErrorPage = (ctx: Context, out: Readonly<Record<string, unknown>>): void =>
  renderPage(
    ctx,
    "failed",
    Object.entries(out)
      .map(([name, value]) => `<p>${escapeHtml(`${name}: ${value}`)}</p>`)
      .join(""),
  );

function renderPage(ctx: Context, title: Text, body: string): void {
  const language = getLanguage(ctx);
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
    <p><small>${t.footer}</small></p>
  </body>
</html>
`;
}

const escapeHtml = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
