// Shows who is logged in on the page at `/`. It uses the public API and writes text only, never markup.

const texts = JSON.parse(document.body.dataset.texts);
const main = document.getElementById("session");

/** Every request has the header, which a form on another site cannot send. */
const request = (path, options = {}) =>
  fetch(path, { ...options, headers: { accept: "application/json", "x-todoke-request": "1", ...options.headers } });

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Parses JSON without rounding numbers past 2^53: they keep their digits as text. */
const parseExactly = (text) =>
  JSON.parse(text, (_, value, { source } = {}) =>
    typeof value === "number" && source && JSON.rawJSON ? JSON.rawJSON(source) : value,
  );
const toDigits = (number) => number.rawJSON ?? String(number);

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

async function show() {
  const response = await request("/v1/me");
  if (response.status === 401) return main.replaceChildren(element("p", {}, texts.nobody), logInLink());
  const body = await response.json();
  if (body.code === "ACCOUNT_INACTIVE")
    return main.replaceChildren(element("p", { id: "inactive" }, texts.inactive), logOutButton());
  if (!response.ok) return main.replaceChildren(element("p", {}, body.detail ?? response.statusText));
  const match = element("div", { id: "match" });
  const points = element("div", { id: "points" });
  const profile = element("pre", { id: "profile" });
  const inbox = element("ul", { id: "inbox" });
  main.replaceChildren(
    element("p", {}, element("strong", { id: "name" }, body.display_name ?? body.email ?? body.user_id), " "),
    logOutButton(),
    match,
    points,
    element("h3", {}, texts.profile),
    profile,
    element("h3", {}, texts.inbox),
    inbox,
  );
  const stream = new EventSource("/v1/inbox/stream");
  await Promise.all([
    showProfile(profile, body.user_id),
    showPoints(points, stream, body.user_id),
    showInbox(inbox, stream),
    showMatch(match, stream),
  ]);
}

async function showProfile(at, userId) {
  const response = await request(`/v1/users/${encodeURIComponent(userId)}/profile`);
  at.textContent = JSON.stringify(parseExactly(await response.text()), null, 2);
}

const changesPoints = ["PointsGranted", "PointsSpent", "PointsExpired"];

/** The player's balance and the points that expire soon, read again after each change. */
async function showPoints(at, stream, userId) {
  const path = `/v1/points/users/${encodeURIComponent(userId)}`;
  const lines = element("ul", {});
  let shown = 0;

  async function refresh() {
    const responses = await Promise.all([request(`${path}/balance`), request(`${path}/expiring?limit=5`)]);
    if (!responses.every(({ ok }) => ok)) return;
    const [account, { lots }] = await Promise.all(
      responses.map(async (response) => parseExactly(await response.text())),
    );
    if (Number(toDigits(account.version)) < shown) return; // A later read was faster.
    shown = Number(toDigits(account.version));
    lines.replaceChildren(element("li", { id: "balance" }, fill(texts.balance, { points: toDigits(account.balance) })));
    for (const what of ["held", "pending"]) {
      const points = toDigits(account[what]);
      if (points !== "0") lines.append(element("li", {}, fill(texts[what], { points })));
    }
    lines.append(...lots.map((lot) => element("li", { className: "expiring" }, formatExpiry(lot))));
    at.replaceChildren(element("h3", {}, texts.points), lines);
  }
  stream.addEventListener(
    "notification",
    ({ data }) => changesPoints.includes(JSON.parse(data).event_type) && refresh(),
  );
  stream.addEventListener("open", refresh); // Shows changes that happened while the stream was closed.
  await refresh();
}

function formatExpiry({ remaining, expires_at }) {
  const day = new Date(expires_at).toLocaleDateString(document.documentElement.lang);
  return fill(texts.expiring, { day, points: toDigits(remaining) });
}

async function showInbox(at, stream) {
  const response = await request("/v1/inbox?limit=20");
  const { notifications = [] } = await response.json();
  const lines = notifications.map(({ text }) => element("li", {}, text));
  at.replaceChildren(...(lines.length > 0 ? lines : [element("li", {}, texts.empty)]));
  stream.addEventListener("notification", ({ data }) => at.prepend(element("li", {}, JSON.parse(data).text)));
}

/** Joins the first mode that needs no attributes. The stream brings the ticket's result, so nothing polls. */
async function showMatch(at, stream) {
  const response = await request("/v1/matchmaking/queues");
  const { queues = [] } = response.ok ? await response.json() : {};
  const queue = queues.find(({ attributes, heartbeat_seconds }) => attributes.length === 0 && !heartbeat_seconds);
  if (!queue) return;
  let ticketId;
  let endedId;
  const line = element("p", {});
  const find = () => button("find-match", texts.findMatch, join);

  async function join() {
    const path = `/v1/matchmaking/queues/${queue.mode}/tickets`;
    const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
    await showTicket(await request(path, { method: "POST", headers, body: "{}" }));
    await refresh(); // Shows a result that arrived before the ticket's ID was known here.
  }
  async function showTicket(response) {
    const ticket = await response.json();
    if (ticket.ticket_id && ticket.ticket_id === endedId) return; // A late response, after the end was shown.
    ticketId = ticket.ticket_id ?? ticketId;
    if (ticket.status !== "QUEUED") endedId = ticket.ticket_id ?? endedId;
    const label = element("span", { id: "ticket" }, texts[ticket.status] ?? ticket.detail, " ");
    if (ticket.status === "QUEUED") return line.replaceChildren(label, button("cancel-match", texts.cancel, cancel));
    if (ticket.match_id) label.append(element("code", {}, ticket.match_id), " ");
    line.replaceChildren(label, find());
  }
  async function refresh() {
    if (ticketId) await showTicket(await request(`/v1/matchmaking/tickets/${ticketId}`));
  }
  const cancel = async () => {
    const response = await request(`/v1/matchmaking/tickets/${ticketId}`, { method: "DELETE" });
    await (response.ok ? showTicket(response) : refresh()); // It may be matched already.
  };
  stream.addEventListener("notification", ({ data }) => JSON.parse(data).data?.ticket_id === ticketId && refresh());
  stream.addEventListener("open", refresh);
  line.replaceChildren(find());
  at.replaceChildren(element("h3", {}, texts.match), line);
}

function button(id, text, onClick) {
  const made = element("button", { type: "button", id }, text);
  made.addEventListener("click", onClick);
  return made;
}

const logInLink = () => element("a", { href: "/login?returnTo=/", className: "button", id: "log-in" }, texts.logIn);

const logOutButton = () =>
  button("log-out", texts.logOut, async () => {
    const response = await request("/logout", { method: "POST" });
    const { logout_url = "/" } = response.ok ? await response.json() : {};
    location.assign(logout_url);
  });

await show();
