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

/** JSON whose numbers keep every digit, as their text: JavaScript would round what is past 2^53. */
const exactly = (text) =>
  JSON.parse(text, (_, value, { source } = {}) =>
    typeof value === "number" && source && JSON.rawJSON ? JSON.rawJSON(source) : value,
  );
const digitsOf = (number) => number.rawJSON ?? String(number);

const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

async function show() {
  const answer = await ask("/v1/me");
  if (answer.status === 401) return place.replaceChildren(element("p", {}, texts.nobody), logInLink());
  const body = await answer.json();
  if (body.code === "ACCOUNT_INACTIVE")
    return place.replaceChildren(element("p", { id: "inactive" }, texts.inactive), logOutButton());
  if (!answer.ok) return place.replaceChildren(element("p", {}, body.detail ?? answer.statusText));
  const match = element("div", { id: "match" });
  const points = element("div", { id: "points" });
  const profile = element("pre", { id: "profile" });
  const inbox = element("ul", { id: "inbox" });
  place.replaceChildren(
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
  const answer = await ask(`/v1/users/${encodeURIComponent(userId)}/profile`);
  at.textContent = JSON.stringify(exactly(await answer.text()), null, 2);
}

const changesPoints = ["PointsGranted", "PointsSpent", "PointsExpired"];

/** What the player has, and what of it runs out soon. The stream says when to look again. */
async function showPoints(at, stream, userId) {
  const path = `/v1/points/users/${encodeURIComponent(userId)}`;
  const lines = element("ul", {});
  let shown = 0;

  async function look() {
    const answers = await Promise.all([ask(`${path}/balance`), ask(`${path}/expiring?limit=5`)]);
    if (!answers.every(({ ok }) => ok)) return;
    const [has, { lots }] = await Promise.all(answers.map(async (answer) => exactly(await answer.text())));
    if (Number(digitsOf(has.version)) < shown) return; // A later look was answered sooner.
    shown = Number(digitsOf(has.version));
    lines.replaceChildren(element("li", { id: "balance" }, filled(texts.balance, { points: digitsOf(has.balance) })));
    for (const what of ["held", "pending"]) {
      const points = digitsOf(has[what]);
      if (points !== "0") lines.append(element("li", {}, filled(texts[what], { points })));
    }
    lines.append(...lots.map((lot) => element("li", { className: "expiring" }, runsOut(lot))));
    at.replaceChildren(element("h3", {}, texts.points), lines);
  }
  stream.addEventListener("notification", ({ data }) => changesPoints.includes(JSON.parse(data).event_type) && look());
  stream.addEventListener("open", look); // What happened while the stream was away is seen now.
  await look();
}

function runsOut({ remaining, expires_at }) {
  const day = new Date(expires_at).toLocaleDateString(document.documentElement.lang);
  return filled(texts.expiring, { day, points: digitsOf(remaining) });
}

async function showInbox(at, stream) {
  const answer = await ask("/v1/inbox?limit=20");
  const { notifications = [] } = await answer.json();
  const lines = notifications.map(({ text }) => element("li", {}, text));
  at.replaceChildren(...(lines.length > 0 ? lines : [element("li", {}, texts.empty)]));
  stream.addEventListener("notification", ({ data }) => at.prepend(element("li", {}, JSON.parse(data).text)));
}

/** A way into the first mode that asks nothing of a ticket. What becomes of the ticket the stream says, and nobody polls. */
async function showMatch(at, stream) {
  const answer = await ask("/v1/matchmaking/queues");
  const { queues = [] } = answer.ok ? await answer.json() : {};
  const queue = queues.find(({ attributes, heartbeat_seconds }) => attributes.length === 0 && !heartbeat_seconds);
  if (!queue) return;
  let ticketId;
  let overId;
  const line = element("p", {});
  const find = () => button("find-match", texts.findMatch, join);

  async function join() {
    const path = `/v1/matchmaking/queues/${queue.mode}/tickets`;
    const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
    await showTicket(await ask(path, { method: "POST", headers, body: "{}" }));
    await look(); // What was told before the ticket was known here is seen now.
  }
  async function showTicket(answered) {
    const ticket = await answered.json();
    if (ticket.ticket_id && ticket.ticket_id === overId) return; // A look that was answered after its end was shown.
    ticketId = ticket.ticket_id ?? ticketId;
    if (ticket.status !== "QUEUED") overId = ticket.ticket_id ?? overId;
    const says = element("span", { id: "ticket" }, texts[ticket.status] ?? ticket.detail, " ");
    if (ticket.status === "QUEUED") return line.replaceChildren(says, button("cancel-match", texts.cancel, cancel));
    if (ticket.match_id) says.append(element("code", {}, ticket.match_id), " ");
    line.replaceChildren(says, find());
  }
  async function look() {
    if (ticketId) await showTicket(await ask(`/v1/matchmaking/tickets/${ticketId}`));
  }
  const cancel = async () => {
    const answered = await ask(`/v1/matchmaking/tickets/${ticketId}`, { method: "DELETE" });
    await (answered.ok ? showTicket(answered) : look()); // It may be matched by now.
  };
  stream.addEventListener("notification", ({ data }) => JSON.parse(data).data?.ticket_id === ticketId && look());
  stream.addEventListener("open", look);
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
    const answer = await ask("/logout", { method: "POST" });
    const { logout_url = "/" } = answer.ok ? await answer.json() : {};
    location.assign(logout_url);
  });

await show();
