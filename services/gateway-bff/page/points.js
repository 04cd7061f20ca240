// The player's points: the balance, what expires soon, and the latest transactions, read again after each change.
import {
  card,
  element,
  fill,
  formatDay,
  formatPoints,
  formatTime,
  orEmpty,
  read,
  readProfile,
  texts,
  toInteger,
} from "./elements.js";

const changesPoints = ["PointsGranted", "PointsSpent", "PointsExpired"];

export function pointsCard({ stream, profile, onEvent }) {
  const balance = element("p", { id: "balance", className: "figure" });
  const notes = element("ul", { className: "plain" });
  const history = element("ul", { id: "points-history", className: "plain rows" });
  let shown = -1n;

  function display({ points: { value: points } = {}, expiring: { value: { lots } = {} } = {} }) {
    if (!points || !lots) return false;
    if (toInteger(points.version) < shown) return false; // A later read was faster.
    shown = toInteger(points.version);
    balance.textContent = fill(texts.balance, { points: formatPoints(points.balance) });
    const parts = ["held", "pending"].filter((part) => toInteger(points[part]) !== 0n);
    notes.replaceChildren(
      ...parts.map((part) => element("li", {}, fill(texts[part], { points: formatPoints(points[part]) }))),
      ...lots.map((lot) => element("li", { className: "expiring" }, formatExpiry(lot))),
    );
    return true;
  }
  async function showHistory() {
    const version = shown;
    const { transactions = [] } = await read(`/v1/points/users/${profile.user_id}/statement?limit=8`);
    if (version === shown) history.replaceChildren(...orEmpty(transactions.map(row), texts.noTransactions));
  }
  const refresh = async () => display(await readProfile("fields=points,expiring")) && showHistory();
  onEvent(({ event_type }) => changesPoints.includes(event_type) && refresh());
  stream.addEventListener("open", refresh); // Shows changes without a notification, such as holds.
  display(profile);
  return card("points", texts.points, balance, notes, element("h3", {}, texts.history), history);
}

function row({ kind, point_amount, reason, created_at }) {
  const amount = toInteger(point_amount);
  const sign = amount > 0n ? "+" : "";
  return element(
    "li",
    {},
    element("span", {}, texts.kinds[kind] ?? kind, reason ? ` · ${reason}` : ""),
    element("strong", { className: amount > 0n ? "plus" : "" }, amount === 0n ? "" : sign + formatPoints(point_amount)),
    element("time", { dateTime: created_at }, formatTime(created_at)),
  );
}

const formatExpiry = ({ remaining, expires_at }) =>
  fill(texts.expiring, { day: formatDay(expires_at), points: formatPoints(remaining) });
