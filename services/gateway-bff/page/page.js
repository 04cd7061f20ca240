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

/** Parts of the player's profile, with their numbers exact. */
const readProfile = async (query) => parseExactly(await (await request(`/v1/me/profile?${query}`)).text());

async function show() {
  const profile = await readProfile("fields=account,entitlements,points,expiring,queues,matchmaking,players,inbox");
  const { code, account = {} } = profile;
  if (code === "unauthenticated") return main.replaceChildren(element("p", {}, texts.nobody), logInLink());
  if (code === "ACCOUNT_INACTIVE")
    return main.replaceChildren(element("p", { id: "inactive" }, texts.inactive), logOutButton());
  if (code) return main.replaceChildren(element("p", {}, profile.detail));
  const { display_name, email } = account.value ?? {};
  const match = element("div", { id: "match" });
  const points = element("div", { id: "points" });
  const inbox = element("ul", { id: "inbox" });
  main.replaceChildren(
    element("p", {}, element("strong", { id: "name" }, display_name ?? email ?? profile.user_id), " "),
    logOutButton(),
    match,
    points,
    element("h3", {}, texts.profile),
    element("pre", { id: "profile" }, JSON.stringify({ ...profile, queues: undefined, inbox: undefined }, null, 2)),
    element("h3", {}, texts.inbox),
    inbox,
  );
  const stream = new EventSource("/v1/inbox/stream");
  showPoints(points, stream, profile);
  showInbox(inbox, stream, profile);
  showMatch(match, stream, profile);
}

const changesPoints = ["PointsGranted", "PointsSpent", "PointsExpired"];

/** The player's balance and the points that expire soon, read again after each change. */
function showPoints(at, stream, profile) {
  const lines = element("ul", {});
  let shown = 0;

  function display({ points: { value: balance } = {}, expiring: { value: { lots } = {} } = {} }) {
    if (!balance || !lots) return;
    if (Number(toDigits(balance.version)) < shown) return; // A later read was faster.
    shown = Number(toDigits(balance.version));
    lines.replaceChildren(element("li", { id: "balance" }, fill(texts.balance, { points: toDigits(balance.balance) })));
    for (const what of ["held", "pending"]) {
      const points = toDigits(balance[what]);
      if (points !== "0") lines.append(element("li", {}, fill(texts[what], { points })));
    }
    lines.append(...lots.map((lot) => element("li", { className: "expiring" }, formatExpiry(lot))));
    at.replaceChildren(element("h3", {}, texts.points), lines);
  }
  const refresh = async () => display(await readProfile("fields=points,expiring"));
  stream.addEventListener(
    "notification",
    ({ data }) => changesPoints.includes(JSON.parse(data).event_type) && refresh(),
  );
  stream.addEventListener("open", refresh); // Shows changes that happened while the stream was closed.
  display(profile);
}

function formatExpiry({ remaining, expires_at }) {
  const day = new Date(expires_at).toLocaleDateString(document.documentElement.lang);
  return fill(texts.expiring, { day, points: toDigits(remaining) });
}

function showInbox(at, stream, { inbox }) {
  const lines = (inbox?.value?.notifications ?? []).map(({ text }) => element("li", {}, text));
  at.replaceChildren(...(lines.length > 0 ? lines : [element("li", {}, texts.empty)]));
  stream.addEventListener("notification", ({ data }) => at.prepend(element("li", {}, JSON.parse(data).text)));
}

/**
 * Shows the open ticket or the latest match, and joins the first mode that needs no attributes. The stream brings the ticket's
 * result, so nothing polls.
 */
function showMatch(at, stream, profile) {
  const queue = profile.queues?.value?.queues.find(
    ({ attributes, heartbeat_seconds }) => attributes.length === 0 && !heartbeat_seconds,
  );
  if (!queue) return;
  let ticketId;
  let endedId;
  const line = element("p", {});
  const find = () => button("find-match", texts.findMatch, join);

  async function join() {
    const path = `/v1/matchmaking/queues/${queue.mode}/tickets`;
    const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
    const response = await request(path, { method: "POST", headers, body: "{}" });
    showTicket(await response.json());
    await refresh(); // Shows a result that arrived before the ticket's ID was known here.
  }
  function showTicket(ticket, { players = [] } = {}) {
    if (ticket.ticket_id && ticket.ticket_id === endedId) return; // A late response, after the end was shown.
    ticketId = ticket.ticket_id ?? ticketId;
    if (ticket.status !== "QUEUED") endedId = ticket.ticket_id ?? endedId;
    const label = element("span", { id: "ticket" }, texts[ticket.status] ?? ticket.detail, " ");
    if (ticket.status === "QUEUED") return line.replaceChildren(label, button("cancel-match", texts.cancel, cancel));
    const names = players.map(({ display_name }) => display_name ?? texts.unnamed).join(", ");
    if (names) label.append(element("strong", { id: "opponents" }, fill(texts.against, { names })), " ");
    if (ticket.match_id) label.append(element("code", {}, ticket.match_id), " ");
    line.replaceChildren(label, find());
  }
  async function refresh() {
    if (!ticketId) return;
    const { matchmaking, players } = await readProfile(`fields=matchmaking,players&ticket_id=${ticketId}`);
    showTicket(matchmaking?.value ?? matchmaking ?? {}, players?.value ?? {});
  }
  const cancel = async () => {
    const response = await request(`/v1/matchmaking/tickets/${ticketId}`, { method: "DELETE" });
    if (response.ok) showTicket(await response.json());
    else await refresh(); // It may be matched already.
  };
  stream.addEventListener("notification", ({ data }) => JSON.parse(data).data?.ticket_id === ticketId && refresh());
  stream.addEventListener("open", refresh);
  line.replaceChildren(find());
  if (profile.matchmaking?.value) showTicket(profile.matchmaking.value, profile.players?.value ?? {});
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
