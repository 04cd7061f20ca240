// Finds a match: joins the first mode that needs no attributes, and shows the open ticket or the latest match, also after a reload.
import { button, card, element, fill, readProfile, request, texts } from "./elements.js";

/** Undefined if no mode can be joined from here. The stream brings the ticket's result, so nothing polls. */
export function matchCard({ stream, profile, onEvent }) {
  const queue = profile.queues?.value?.queues.find(
    ({ attributes, heartbeat_seconds }) => attributes.length === 0 && !heartbeat_seconds,
  );
  if (!queue) return undefined;
  let ticketId;
  let endedId;
  const line = element("p", { role: "status" });
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
    const label = element(
      "span",
      { id: "ticket", className: ticket.status ?? "" },
      texts[ticket.status] ?? ticket.detail,
      " ",
    );
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
  onEvent(({ data }) => data?.ticket_id === ticketId && refresh());
  stream.addEventListener("open", refresh);
  line.replaceChildren(find());
  if (profile.matchmaking?.value) showTicket(profile.matchmaking.value, profile.players?.value ?? {});
  return card("match", texts.match, line);
}
