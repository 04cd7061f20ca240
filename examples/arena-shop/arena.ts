/** How players earn points. Each command has a key that its cause has given, so it is carried out once, also if the shop dies here. */
import { createHash } from "node:crypto";
import type { Player } from "./player.ts";
import type { Todoke } from "./purchases.ts";

const [bonus, winnerPoints, loserPoints] = [100n, 200n, 100n];

/** Todoke remembers a key for 24 hours. A match that is older than this could be paid twice, and is not paid. */
const paidWithinMs = 60 * 60 * 1_000;

export function createArena(todoke: Pick<Todoke, "points">) {
  return {
    /** Once a day: the day is part of the key. */
    async payBonus({ userId: user_id }: Player): Promise<{ readonly balance: bigint }> {
      const key = `bonus:${user_id}:${new Date().toISOString().slice(0, 10)}`;
      const { balance } = await todoke.points.add({ user_id, point_amount: bonus, reason: "daily bonus" }, { key });
      return { balance };
    },

    /**
     * The player only names the ticket: the opponent and the match are what the gateway says. Undefined if there is no such match,
     * or if it was played too long ago.
     */
    async payMatch({ userId: user_id, todoke: player }: Player, ticket_id: string) {
      const { match_id, matched_at = "", peers = [] } = await player.matchmaking.getTicket({ ticket_id });
      if (!match_id || Date.now() - Date.parse(matched_at) > paidWithinMs) return undefined;
      const players = [user_id, ...peers.flatMap((peer) => peer.user_id ?? [])];
      const won = winnerOf(match_id, players) === user_id;
      const point_amount = won ? winnerPoints : loserPoints;
      const reason = won ? "arena: won" : "arena: lost";
      const key = `match:${match_id}:${user_id}`;
      await todoke.points.add({ user_id, point_amount, reason, source: "match", source_id: match_id }, { key });
      return { match_id, won, point_amount };
    },
  };
}

/** In place of a game: a fight with one result for both players, however often they ask. */
function winnerOf(matchId: string, players: readonly string[]): string | undefined {
  const rank = (player: string) => createHash("sha256").update(`${matchId} ${player}`).digest("hex");
  return players.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1))[0];
}
