/** The texts of the page, in English and Japanese. */
const en = {
  tagline: "Fight, earn points, buy legendary gear. Nothing lost, nothing doubled.",
  logIn: "Log in",
  logInHint: "alice / alice-demo, and bob / bob-demo in a private window",
  logOut: "Log out",
  points: "points",
  live: "live",
  waiting: "connecting …",
  arena: "Arena",
  arenaHint: "Two players meet, and the better one wins 200 points. The other one gets 100.",
  fight: "Find a match",
  searching: "Looking for an opponent … log in as another player in a private window.",
  cancel: "Cancel",
  won: "Victory against {name}!",
  lost: "{name} was faster this time.",
  earned: "+{points} points",
  opponent: "your opponent",
  bonus: "Claim the daily 100",
  bonusClaimed: "Claimed. Come back tomorrow.",
  shop: "Shop",
  owned: "Owned",
  buy: "Buy",
  buying: "Buying …",
  missing: "{points} to go",
  bought: "{item} is yours!",
  refused: "Not enough points.",
  unsure: "No answer yet. Asking again; you pay once.",
  news: "News",
  noNews: "Your news appears here, live.",
  failed: "That did not work: {detail}",
  ended: "Your session has ended. Log in again.",
  footer: "A demo of Todoke, built with @todoke/client. Its back-end: examples/arena-shop.",
  items: { "fire-sword": "Fire sword", "ice-shield": "Ice shield", "golden-crown": "Golden crown" },
};

const ja: typeof en = {
  tagline: "戦ってポイントを獲得し、伝説の装備を手に入れよう。失われず、二重にもならない。",
  logIn: "ログイン",
  logInHint: "alice / alice-demo、別のプライベートウィンドウで bob / bob-demo",
  logOut: "ログアウト",
  points: "ポイント",
  live: "接続中",
  waiting: "接続しています…",
  arena: "アリーナ",
  arenaHint: "2人が対戦し、勝者は200ポイント、敗者も100ポイントを獲得します。",
  fight: "対戦相手を探す",
  searching: "対戦相手を探しています… プライベートウィンドウで別のプレイヤーとしてログインしてください。",
  cancel: "やめる",
  won: "{name} に勝利しました！",
  lost: "今回は {name} が勝ちました。",
  earned: "+{points} ポイント",
  opponent: "対戦相手",
  bonus: "本日の100ポイントを受け取る",
  bonusClaimed: "受け取りました。また明日どうぞ。",
  shop: "ショップ",
  owned: "所持",
  buy: "購入",
  buying: "購入中…",
  missing: "あと {points}",
  bought: "{item} を手に入れました！",
  refused: "ポイントが足りません。",
  unsure: "まだ応答がありません。再確認中です。支払いは1回だけです。",
  news: "お知らせ",
  noNews: "お知らせがここにリアルタイムで表示されます。",
  failed: "失敗しました：{detail}",
  ended: "セッションが終了しました。再度ログインしてください。",
  footer: "@todoke/client で作った Todoke のデモです。バックエンド：examples/arena-shop",
  items: { "fire-sword": "炎の剣", "ice-shield": "氷の盾", "golden-crown": "黄金の冠" },
};

export const language = navigator.language.startsWith("ja") ? "ja" : "en";
document.documentElement.lang = language;
export const texts = language === "ja" ? ja : en;

export const fill = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

export const formatPoints = (points: bigint): string => points.toLocaleString(language);
export const itemName = (item: string): string => (texts.items as Readonly<Record<string, string>>)[item] ?? item;
