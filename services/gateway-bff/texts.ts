/**
 * What the gateway says when it refuses, in the language of who hears it: English is where the problem is declared, Japanese
 * is here. Codes are the same in every language. What a service says goes on as it said it.
 */
import type { HttpApp } from "@todoke/http";
import { type Language, languageOf } from "./language.ts";

interface Text {
  readonly title: string;
  readonly detail: string;
}

const later = "しばらくしてから、もう一度お試しください。";
const sameKey = "同じ Idempotency-Key でもう一度送信すれば、結果を確認できます。";

const services = {
  ACCOUNT: "アカウント",
  ENTITLEMENT: "所持アイテム",
  NOTIFICATION: "お知らせ",
  MATCHMAKING: "マッチング",
  POINTS: "ポイント",
} as const;

const ofServices = Object.entries(services).flatMap(([code, name]): [string, Text][] => [
  [
    `${code}_TIMEOUT`,
    {
      title: `${name}サービスが時間内に応答しませんでした`,
      detail: `変更の場合は反映されている可能性があります。${sameKey}`,
    },
  ],
  [
    `${code}_BAD_GATEWAY`,
    {
      title: `${name}サービスが正しく応答しませんでした`,
      detail: `変更の場合は反映されている可能性があります。${sameKey}`,
    },
  ],
  [`${code}_UNAVAILABLE`, { title: `${name}サービスを現在利用できません`, detail: later }],
]);

const japanese: ReadonlyMap<string, Text> = new Map(
  Object.entries<Text>({
    ...Object.fromEntries(ofServices),
    "profile-unavailable": { title: "プロフィールを現在表示できません", detail: later },
    "session-not-found": {
      title: "そのセッションはありません",
      detail: "すでに終了しているか、別の利用者のセッションです。",
    },
    "change-not-spread": { title: "変更は保存されましたが、まだすべてに反映されていません", detail: sameKey },
    ACCOUNT_INACTIVE: { title: "このアカウントは利用できません", detail: "アカウントは停止中か、削除されています。" },
    "credentials-ambiguous": {
      title: "認証情報が二つあります",
      detail: "Cookie か Authorization のどちらか一方だけを送信してください。",
    },
    "csrf-refused": {
      title: "このサイトからのリクエストではありません",
      detail: "このサイトのページからもう一度お試しください。",
    },
    "reauthentication-required": {
      title: "もう一度ログインが必要です",
      detail: "大切な操作のため、/login?reauthenticate=yes からもう一度ログインしてください。",
    },
    "rate-limited": { title: "リクエストが多すぎます", detail: later },
    "too-many-in-flight": { title: "同時に処理できるリクエスト数を超えました", detail: later },
    "identity-provider-unavailable": {
      title: "ログイン先に接続できません",
      detail: `ログイン中の方はそのまま利用できます。${later}`,
    },
    "identity-not-proven": {
      title: "ログイン先の応答を確認できませんでした",
      detail: "もう一度ログインしてください。",
    },
    "login-not-under-way": { title: "このログインは無効です", detail: "もう一度最初からログインしてください。" },
    "login-refused": { title: "ログインが拒否されました", detail: "もう一度お試しください。" },
    "native-login-invalid": {
      title: "このクライアントからはログインできません",
      detail: "リクエストの内容を確認してください。",
    },
    "native-code-refused": { title: "このコードは使えません", detail: "もう一度ログインしてください。" },
    "logout-token-refused": {
      title: "ログアウトトークンを確認できませんでした",
      detail: "トークンが無効か、期限切れです。",
    },
    unauthenticated: { title: "ログインしていません", detail: "ログインしてください。" },
    forbidden: { title: "この操作は許可されていません", detail: "権限がありません。" },
  }),
);

/** The same problem in another language; as it is, where we have no words for it. */
export function inLanguage<P extends Text & { readonly code: string }>(problem: P, language: Language): P {
  const text = language === "ja" ? japanese.get(problem.code) : undefined;
  return text ? { ...problem, ...text } : problem;
}

/** Every problem that leaves the gateway, put into the language of who asked, and marked with it. */
export function speakTheirLanguage(app: HttpApp): void {
  app.addHook("onSend", (request, reply, payload, done) => {
    if (reply.statusCode < 400 || typeof payload !== "string" || !isProblem(reply.getHeader("content-type"))) {
      done(null, payload);
      return;
    }
    const said = JSON.parse(payload);
    const told = inLanguage(said, languageOf(request));
    reply.header("content-language", told === said ? "en" : "ja").header("vary", "accept-language");
    done(null, told === said ? payload : JSON.stringify(told));
  });
}

const isProblem = (type: unknown) => String(type).startsWith("application/problem+json");
