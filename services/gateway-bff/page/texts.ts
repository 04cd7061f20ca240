/** The words of the page at `/`, in each language that it speaks. */
export type Language = "en" | "ja";

const en = {
  title: "Todoke",
  tagline: "Nothing lost, nothing doubled.",
  you: "You",
  nobody: "Nobody is logged in here.",
  logIn: "Log in",
  logOut: "Log out",
  profile: "Profile",
  inbox: "Inbox",
  empty: "Nothing has happened yet.",
  services: "What runs here",
  service: "Service",
  address: "Address",
  state: "State",
  ready: "ready",
  notReady: "not ready",
  away: "does not answer",
  reference: "API reference",
  inactive: "This account is suspended.",
  needsScript: "Who is logged in is shown by a script of this page; it is turned off in this browser.",
};

const ja: typeof en = {
  title: "Todoke 届け",
  tagline: "失わず、重ねず。",
  you: "あなた",
  nobody: "ログインしていません。",
  logIn: "ログイン",
  logOut: "ログアウト",
  profile: "プロフィール",
  inbox: "お知らせ",
  empty: "まだ何もありません。",
  services: "稼働中のサービス",
  service: "サービス",
  address: "アドレス",
  state: "状態",
  ready: "正常",
  notReady: "準備中",
  away: "応答なし",
  reference: "API リファレンス",
  inactive: "このアカウントは停止されています。",
  needsScript: "ログイン状態はこのページのスクリプトが表示します。このブラウザでは無効になっています。",
};

export const texts = { en, ja } as const;
export type Texts = typeof en;
