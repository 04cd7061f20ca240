/**
 * The gateway's problems in Japanese; the English text is where a problem is declared. Codes are the same in every
 * language. Problems of services are passed on as they are.
 */
import type { HttpApp } from "@todoke/http";
import { type Language, requestLanguage } from "./accept-language.ts";

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
  ORDERS: "注文",
} as const;

const maybeApplied = `変更の場合は反映されている可能性があります。${sameKey}`;

const upstreamTexts = Object.entries(services).flatMap(([code, name]): [string, Text][] => [
  [`${code}_TIMEOUT`, { title: `${name}サービスが時間内に応答しませんでした`, detail: maybeApplied }],
  [`${code}_BAD_GATEWAY`, { title: `${name}サービスが正しく応答しませんでした`, detail: maybeApplied }],
  [`${code}_UNAVAILABLE`, { title: `${name}サービスを現在利用できません`, detail: later }],
]);

const japanese: ReadonlyMap<string, Text> = new Map(
  Object.entries<Text>({
    ...Object.fromEntries(upstreamTexts),
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

/** Returns the problem unchanged if there is no translation. */
export function translate<P extends Text & { readonly code: string }>(problem: P, language: Language): P {
  const text = language === "ja" ? japanese.get(problem.code) : undefined;
  return text ? { ...problem, ...text } : problem;
}

/** Translates every problem that leaves the gateway and sets Content-Language. */
export function translateProblems(app: HttpApp): void {
  app.addHook("onSend", (request, reply, payload, done) => {
    if (reply.statusCode < 400 || typeof payload !== "string" || !isProblem(reply.getHeader("content-type"))) {
      done(null, payload);
      return;
    }
    const problem = JSON.parse(payload);
    const translated = translate(problem, requestLanguage(request));
    const isTranslated = translated !== problem;
    reply.header("content-language", isTranslated ? "ja" : "en").header("vary", "accept-language");
    done(null, isTranslated ? JSON.stringify(translated) : payload);
  });
}

export const isProblem = (contentType: unknown): boolean => String(contentType).startsWith("application/problem+json");
