/** The page of the arena shop: everything that a player sees comes from the gateway, by its client, and from the shop's back-end. */
import { createClient, isProblem, logInUrl } from "@todoke/client";
import { openArena } from "./arena.ts";
import { button, element, part, toast } from "./elements.ts";
import { openNews } from "./news.ts";
import { openShelf } from "./shelf.ts";
import { formatPoints, texts } from "./texts.ts";

const gateway = location.origin;
const todoke = createClient({ gateway });

function showWelcome(): void {
  const href = logInUrl({ gateway, returnTo: "/shop/" });
  part("player").replaceChildren();
  part("main").className = "welcome";
  part("main").replaceChildren(
    element(
      "div",
      { className: "heroes" },
      ...["fire-sword", "golden-crown", "ice-shield"].map((item) =>
        element("img", { src: `/shop/page/${item}.svg`, alt: "", width: 128, height: 128 }),
      ),
    ),
    element("h1", {}, "Arena Shop"),
    element("p", {}, texts.tagline),
    element("a", { id: "log-in", className: "button", href }, texts.logIn),
    element("p", { className: "hint" }, texts.logInHint),
  );
}

async function showPlayer(user_id: string, name: string): Promise<void> {
  let balance = 0n;
  let version = -1n;
  const points = element("strong", { id: "balance" });
  const live = element("span", { id: "live", className: "waiting" }, texts.waiting);
  const refreshPoints = async () => {
    const read = await todoke.points.getBalance({ user_id });
    if (read.version < version) return; // A later read was faster.
    [balance, version] = [read.balance, read.version];
    points.textContent = formatPoints(balance);
  };
  await refreshPoints();
  const shelf = await openShelf(todoke, user_id, () => balance, refresh);
  async function refresh(): Promise<void> {
    await refreshPoints();
    shelf.display();
  }
  const news = await openNews(todoke, {
    onNews: ({ event_type }) => (event_type.startsWith("Entitlement") ? shelf.refresh() : refresh()),
    onState(state) {
      live.className = state;
      live.textContent = state === "live" ? texts.live : texts.waiting;
    },
    onEnd: () => toast(texts.ended, "bad"),
  });
  part("player").replaceChildren(
    live,
    element("span", { className: "balance" }, points, ` ${texts.points}`),
    element("span", { id: "name" }, name),
    button("log-out", texts.logOut, logOut),
  );
  const card = (id: string, heading: string, ...children: (Node | string)[]) =>
    element("section", { id: `${id}-card` }, element("h2", {}, heading), ...children);
  part("main").className = "";
  part("main").replaceChildren(
    card("arena", texts.arena, element("p", {}, texts.arenaHint), await openArena(todoke, user_id, refresh)),
    card("shop", texts.shop, shelf.list),
    card("news", texts.news, news),
  );
}

async function logOut(): Promise<void> {
  const { logout_url } = await todoke.gateway.logOut();
  location.assign(logout_url ?? "/shop/");
}

part("footer").textContent = texts.footer;
try {
  const { user_id, display_name } = await todoke.gateway.getMe();
  await showPlayer(user_id, display_name ?? user_id);
} catch (error) {
  if (!isProblem(error, "unauthenticated")) toast(String(error), "bad");
  showWelcome();
}
