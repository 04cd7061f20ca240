// Who is logged in, on the page at `/`. It asks as any client of the gateway does, and writes text only, never markup.

const texts = JSON.parse(document.body.dataset.texts);
const place = document.getElementById("session");

/** Every unsafe request carries the header: a form on another site cannot send it. */
const ask = (path, options = {}) =>
  fetch(path, { ...options, headers: { accept: "application/json", "x-todoke-request": "1", ...options.headers } });

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

async function show() {
  const answer = await ask("/v1/me");
  if (answer.status === 401) return place.replaceChildren(element("p", {}, texts.nobody), logInLink());
  const body = await answer.json();
  if (body.code === "ACCOUNT_INACTIVE")
    return place.replaceChildren(element("p", { id: "inactive" }, texts.inactive), logOutButton());
  if (!answer.ok) return place.replaceChildren(element("p", {}, body.detail ?? answer.statusText));
  const profile = element("pre", { id: "profile" });
  const inbox = element("ul", { id: "inbox" });
  place.replaceChildren(
    element("p", {}, element("strong", { id: "name" }, body.display_name ?? body.email ?? body.user_id), " "),
    logOutButton(),
    element("h3", {}, texts.profile),
    profile,
    element("h3", {}, texts.inbox),
    inbox,
  );
  await Promise.all([showProfile(profile, body.user_id), showInbox(inbox)]);
}

async function showProfile(at, userId) {
  const answer = await ask(`/v1/users/${encodeURIComponent(userId)}/profile`);
  at.textContent = JSON.stringify(await answer.json(), null, 2);
}

async function showInbox(at) {
  const answer = await ask("/v1/inbox?limit=20");
  const { notifications = [] } = await answer.json();
  const lines = notifications.map(({ text }) => element("li", {}, text));
  at.replaceChildren(...(lines.length > 0 ? lines : [element("li", {}, texts.empty)]));
  const stream = new EventSource("/v1/inbox/stream");
  stream.addEventListener("notification", ({ data }) => at.prepend(element("li", {}, JSON.parse(data).text)));
}

const logInLink = () => element("a", { href: "/login?returnTo=/", className: "button", id: "log-in" }, texts.logIn);

function logOutButton() {
  const button = element("button", { type: "button", id: "log-out" }, texts.logOut);
  button.addEventListener("click", async () => {
    const answer = await ask("/logout", { method: "POST" });
    const { logout_url = "/" } = answer.ok ? await answer.json() : {};
    location.assign(logout_url);
  });
  return button;
}

await show();
