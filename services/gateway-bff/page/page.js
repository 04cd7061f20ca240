// The player's page at `/`: it uses the public API only.
import { button, element, readProfile, request, texts } from "./elements.js";
import { inboxCard } from "./inbox.js";
import { itemsCard } from "./items.js";
import { matchCard } from "./match.js";
import { pointsCard } from "./points.js";
import { sessionsCard } from "./sessions.js";

const main = document.getElementById("session");

async function show() {
  const profile = await readProfile("fields=account,entitlements,points,expiring,queues,matchmaking,players,inbox");
  const { code, account = {}, inbox } = profile;
  if (code === "unauthenticated") return main.replaceChildren(element("p", {}, texts.nobody), logInLink());
  if (code === "ACCOUNT_INACTIVE")
    return main.replaceChildren(element("p", { id: "inactive" }, texts.inactive), logOutButton());
  if (code) return main.replaceChildren(element("p", {}, profile.detail));
  const { display_name, email } = account.value ?? {};
  const after = inbox?.value?.last_event_id;
  const stream = new EventSource(`/v1/inbox/stream${after ? `?last_event_id=${encodeURIComponent(after)}` : ""}`);
  const onEvent = (listen) => stream.addEventListener("notification", ({ data }) => listen(JSON.parse(data)));
  const parts = [matchCard, pointsCard, itemsCard, inboxCard, sessionsCard].map((part) =>
    part({ stream, profile, onEvent }),
  );
  main.replaceChildren(
    element(
      "p",
      { className: "bar" },
      playerName(display_name ?? email ?? profile.user_id, email),
      liveState(stream),
      logOutButton(),
    ),
    element("div", { className: "cards" }, ...parts.filter(Boolean)),
  );
}

function playerName(name, email) {
  const line = element("span", {}, element("strong", { id: "name" }, name));
  if (email && email !== name) line.append(" ", element("span", { className: "quiet" }, email));
  return line;
}

/** Whether the page changes by itself at the moment. */
function liveState(stream) {
  const state = element("span", { id: "live", className: "quiet", role: "status" }, texts.connecting);
  stream.addEventListener("open", () => state.replaceChildren(texts.live));
  stream.addEventListener("error", () => state.replaceChildren(texts.connecting));
  return state;
}

const logInLink = () => element("a", { href: "/login?returnTo=/", className: "button", id: "log-in" }, texts.logIn);

const logOutButton = () =>
  button("log-out", texts.logOut, async () => {
    const response = await request("/logout", { method: "POST" });
    const { logout_url = "/" } = response.ok ? await response.json() : {};
    location.assign(logout_url);
  });

await show();
