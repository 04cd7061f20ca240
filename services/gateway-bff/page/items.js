// What the player owns, read again when it changes.
import { card, element, fill, formatDay, orEmpty, readProfile, texts } from "./elements.js";

export function itemsCard({ stream, profile, onEvent }) {
  const list = element("ul", { id: "items", className: "plain chips" });

  function display({ entitlements: { value } = {} }) {
    const owned = value?.entitlements.filter(({ status }) => status === "ACTIVE");
    if (owned) list.replaceChildren(...orEmpty(owned.map(item), texts.noItems));
  }
  const refresh = async () => display(await readProfile("fields=entitlements"));
  onEvent(({ event_type }) => event_type.startsWith("Entitlement") && refresh());
  stream.addEventListener("open", refresh); // Shows changes that happened while the stream was closed.
  display(profile);
  return card("items", texts.items, list);
}

const item = ({ stock_keeping_unit, expires_at }) =>
  element("li", {}, stock_keeping_unit, expires_at ? ` (${fill(texts.until, { day: formatDay(expires_at) })})` : "");
