/** The player's inbox, as it fills. */
import type { Notification, PlayerClient, StreamState } from "@todoke/client";
import { element } from "./elements.ts";
import { language, texts } from "./texts.ts";

const shownMax = 12;

export interface NewsOptions {
  readonly onNews: (item: Notification) => unknown;
  readonly onState: (state: StreamState) => void;
  /** The session has ended. */
  readonly onEnd: (error: unknown) => void;
}

/** The list says where the stream continues, so nothing is lost between the two. */
export async function openNews(todoke: PlayerClient, { onNews, onState, onEnd }: NewsOptions) {
  const list = element("ol", { id: "news" });
  const { notifications, last_event_id } = await todoke.inbox.list({ limit: shownMax });
  list.append(...notifications.map(row));
  if (notifications.length === 0) list.append(element("li", { className: "empty" }, texts.noNews));

  async function follow(): Promise<void> {
    for await (const { item } of todoke.inbox.follow({ after: last_event_id, onState })) {
      list.querySelector(".empty")?.remove();
      const made = row(item);
      made.classList.add("new");
      list.prepend(made);
      for (const old of [...list.children].slice(shownMax)) old.remove();
      onNews(item);
    }
  }
  follow().catch(onEnd);
  return list;
}

const formatTime = (time: string) => new Date(time).toLocaleTimeString(language, { timeStyle: "short" });

const row = ({ text, event_type, occurred_at }: Notification) =>
  element(
    "li",
    { className: event_type },
    element("span", {}, text),
    element("time", { dateTime: occurred_at }, formatTime(occurred_at)),
  );
