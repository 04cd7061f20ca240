/** The arena: finds a match, and claims the points that it brought. A ticket survives a reload. */
import { type PlayerClient, type Ticket, TicketEnded } from "@todoke/client";
import { button, element, toast } from "./elements.ts";
import { callShop } from "./shop-api.ts";
import { fill, texts } from "./texts.ts";

const mode = "duel";

interface Opponents {
  readonly players: readonly { readonly display_name?: string }[];
}

export async function openArena(todoke: PlayerClient, user_id: string, onChange: () => unknown) {
  const stage = element("div", { id: "arena", role: "status" });
  let isBusy = false;

  function showIdle(...result: Node[]): void {
    isBusy = false;
    stage.replaceChildren(...result, button("fight", texts.fight, fight), bonusButton());
  }

  async function fight(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    const joined = todoke.matchmaking.join(mode);
    const cancel = button("cancel", texts.cancel, async () => {
      const { ticket_id } = await joined;
      await todoke.matchmaking.cancelTicket({ ticket_id }).catch(() => {}); // It may be matched already.
    });
    stage.replaceChildren(element("p", { className: "searching" }, texts.searching), cancel);
    try {
      await showMatch(await joined.matched());
    } catch (error) {
      showIdle();
      if (!(error instanceof TicketEnded)) toast(fill(texts.failed, { detail: String(error) }), "bad");
    }
  }

  async function showMatch({ ticket_id }: Ticket): Promise<void> {
    const { status, body } = await callShop("matches", { ticket_id });
    if (status !== 200) return showIdle();
    const name = await opponentOf(ticket_id);
    showIdle(
      element(
        "p",
        { id: "result", className: body.won ? "won" : "lost" },
        element("strong", {}, fill(body.won ? texts.won : texts.lost, { name })),
        element("span", {}, fill(texts.earned, { points: body.point_amount ?? "" })),
        element("code", {}, body.match_id ?? ""),
      ),
    );
    await onChange();
  }

  async function opponentOf(ticket_id: string): Promise<string> {
    const { players } = await todoke.gateway.getMyProfile({ fields: "players", ticket_id });
    const found = players?.status === "ok" ? (players.value as Opponents) : undefined;
    return found?.players[0]?.display_name ?? texts.opponent;
  }

  /** The day is kept here only to show it: the back-end pays once a day in any case. */
  function bonusButton(): HTMLElement {
    const storageKey = `arena-shop-bonus-${user_id}`;
    const today = new Date().toISOString().slice(0, 10);
    const isClaimed = () => localStorage.getItem(storageKey) === today;
    const claim = button("bonus", isClaimed() ? texts.bonusClaimed : texts.bonus, async () => {
      claim.disabled = true;
      const { status, body } = await callShop("bonus", {});
      if (status === 200) localStorage.setItem(storageKey, today);
      else toast(fill(texts.failed, { detail: body.detail ?? String(status) }), "bad");
      claim.replaceWith(bonusButton());
      await onChange();
    });
    claim.className = "quiet";
    claim.disabled = isClaimed();
    return claim;
  }

  showIdle();
  // After a reload a player who waited still waits: joining again returns the open ticket. A match is claimed again, to the same effect.
  const { tickets } = await todoke.matchmaking.listTickets({ limit: 1 });
  const latest = tickets.find((ticket) => ticket.mode === mode);
  if (latest?.status === "QUEUED") void fight();
  if (latest?.status === "MATCHED") void showMatch(latest);
  return stage;
}
