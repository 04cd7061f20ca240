// Where the player is logged in, and the end of the other sessions.
import { button, card, element, fill, formatTime, read, request, texts } from "./elements.js";

export function sessionsCard() {
  const list = element("ul", { id: "sessions", className: "plain" });
  const notice = element("p", { role: "status" });
  const endOthers = button("end-others", texts.endOthers, () => end("/v1/sessions:revoke-others", "POST"));
  endOthers.hidden = true;

  async function refresh() {
    const { sessions = [], detail = "" } = await read("/v1/sessions");
    notice.textContent = detail;
    list.replaceChildren(...sessions.map(row));
    endOthers.hidden = sessions.length < 2;
  }
  async function end(path, method) {
    const response = await request(path, { method });
    const { detail } = response.ok ? {} : await response.json();
    await refresh();
    if (detail) notice.textContent = detail;
  }
  function row({ session_id, client, user_agent, last_seen_at, current }) {
    const line = element("li", {}, element("strong", {}, nameOf(client, user_agent)), " ");
    if (current) line.append(element("span", { className: "current" }, texts.thisBrowser));
    else
      line.append(
        element("time", { dateTime: last_seen_at }, fill(texts.lastSeen, { time: formatTime(last_seen_at) })),
        " ",
      );
    if (!current)
      line.append(button(`end-${session_id}`, texts.endSession, () => end(`/v1/sessions/${session_id}`, "DELETE")));
    return line;
  }
  refresh();
  return card("sessions", texts.sessions, list, endOthers, notice);
}

/** The browser and the system, if the user agent names ones that people know. */
function nameOf(client, userAgent = "") {
  if (client === "native") return texts.program;
  const browser = ["Edg", "Firefox", "Chrome", "Safari"].find((name) => userAgent.includes(`${name}/`));
  const system = ["Android", "iPhone", "Windows", "Mac OS", "Linux"].find((name) => userAgent.includes(name));
  return [browser === "Edg" ? "Edge" : browser, system].filter(Boolean).join(", ") || texts.browser;
}
