/** A game: the player logs in, finds an opponent, and reads the news of it. */
import { createClient } from "@todoke/client";
import { logIn } from "@todoke/client/login";

const gateway = process.env.TODOKE_GATEWAY ?? "http://localhost:8080";

// A real game opens the player's browser itself.
const session = await logIn({ gateway, openBrowser: (url) => console.log(`Log in at ${url}`) });
const todoke = createClient({ gateway, session });
const { user_id } = await todoke.gateway.getMe();
console.log(`Logged in as ${user_id}`);

// The list says where the stream continues: nothing is lost between the two.
const { last_event_id } = await todoke.inbox.list();
const match = await todoke.matchmaking.join("duel").matched();
console.log(`Matched in ${match.match_id} with ${match.peers?.map((peer) => peer.user_id).join(", ")}`);

// A program that keeps the id of each item can stop at any time and continue with it.
for await (const { item } of todoke.inbox.follow({ after: last_event_id })) {
  console.log(`News: ${item.text}`);
  if (item.data?.match_id === match.match_id) break;
}
await todoke.gateway.logOut();
