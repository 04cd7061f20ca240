/** The shop: what there is, what the player owns, and the purchase. */
import type { PlayerClient } from "@todoke/client";
import { button, element, toast } from "./elements.ts";
import { callShop } from "./shop-api.ts";
import { fill, formatPoints, itemName, texts } from "./texts.ts";

interface Purchase {
  readonly purchase_id: string;
  readonly item: string;
}

/** `balance` is the player's; `onChange` is called after a purchase. */
export async function openShelf(todoke: PlayerClient, user_id: string, balance: () => bigint, onChange: () => unknown) {
  const prices = Object.entries((await callShop("items")).body).map(([item, price]) => [item, BigInt(price)] as const);
  const list = element("ul", { id: "shelf" });
  const storageKey = `arena-shop-purchase-${user_id}`;
  let owned = new Set<string>();
  let pending: Purchase | undefined = JSON.parse(localStorage.getItem(storageKey) ?? "null") ?? undefined;

  function display(): void {
    list.replaceChildren(...prices.map(([item, price]) => card(item, price)));
  }

  function card(item: string, price: bigint): HTMLElement {
    const missing = price - balance();
    const isPending = pending?.item === item;
    const action = owned.has(item)
      ? element("p", { className: "owned" }, texts.owned)
      : button(`buy-${item}`, isPending ? texts.buying : missing > 0n ? lacking(missing) : texts.buy, () => buy(item));
    if (action instanceof HTMLButtonElement) action.disabled = pending !== undefined || missing > 0n;
    return element(
      "li",
      { className: owned.has(item) ? "item is-owned" : "item" },
      element("img", { src: `/shop/page/${item}.svg`, alt: "", width: 128, height: 128 }),
      element("h3", {}, itemName(item)),
      element("p", { className: "price" }, formatPoints(price)),
      action,
    );
  }
  const lacking = (missing: bigint) => fill(texts.missing, { points: formatPoints(missing) });

  /** The purchase has its ID before it is sent, and is kept until there is an answer, also over a reload. */
  async function buy(item: string): Promise<void> {
    if (pending) return;
    pending = { purchase_id: crypto.randomUUID(), item };
    localStorage.setItem(storageKey, JSON.stringify(pending));
    await finish(pending);
  }

  async function finish(purchase: Purchase): Promise<void> {
    display();
    const { status, body } = await callShop("purchases", purchase, () => toast(texts.unsure, "bad"));
    if (status === 503) return; // It is not known: the next visit asks again.
    pending = undefined;
    localStorage.removeItem(storageKey);
    if (status === 200) toast(fill(texts.bought, { item: itemName(purchase.item) }), "good");
    else toast(status === 402 ? texts.refused : fill(texts.failed, { detail: body.detail ?? String(status) }), "bad");
    await Promise.all([refresh(), onChange()]);
  }

  async function refresh(): Promise<void> {
    const skus: string[] = [];
    for await (const { stock_keeping_unit } of todoke.entitlements.list({ user_id, status: "ACTIVE" }))
      skus.push(stock_keeping_unit);
    owned = new Set(skus);
    display();
  }

  await refresh();
  if (pending) void finish(pending);
  return { list, display, refresh };
}
