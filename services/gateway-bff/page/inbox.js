// The player's inbox with the number of unread notifications, live. Which one was read last is known to this browser only.
import { button, card, element, fill, formatTime, orEmpty, texts } from "./elements.js";

const storageKey = "todoke-inbox-read";
const shownMax = 20;

export function inboxCard({ profile, onEvent }) {
  const count = element("span", { id: "unread" });
  const list = element("ul", { id: "inbox", className: "plain" });
  const markRead = button("mark-read", texts.markRead, () => {
    localStorage.setItem(storageKey, JSON.stringify({ [profile.user_id]: notifications[0]?.notification_id }));
    display();
  });
  let notifications = profile.inbox?.value?.notifications ?? [];

  function display() {
    const unread = countUnread();
    count.textContent = unread > 0 ? fill(texts.unread, { count: unread === shownMax ? `${unread}+` : unread }) : "";
    markRead.hidden = unread === 0;
    const items = notifications.map(({ text, occurred_at }, index) =>
      element(
        "li",
        { className: index < unread ? "unread" : "" },
        text,
        " ",
        element("time", { dateTime: occurred_at }, formatTime(occurred_at)),
      ),
    );
    list.replaceChildren(...orEmpty(items, texts.empty));
  }
  /** Everything before the one that was read last, because the newest comes first. */
  function countUnread() {
    const lastRead = JSON.parse(localStorage.getItem(storageKey) ?? "{}")[profile.user_id];
    const index = notifications.findIndex(({ notification_id }) => notification_id === lastRead);
    return index === -1 ? notifications.length : index;
  }
  onEvent((notification) => {
    notifications = [notification, ...notifications].slice(0, shownMax);
    display();
  });
  // Another window of this player marked them as read.
  addEventListener("storage", display);
  display();
  return card("inbox", texts.inbox, element("p", { className: "bar", role: "status" }, count, markRead), list);
}
