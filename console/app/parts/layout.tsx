/** The frame of every page: search, navigation, live updates, and the menu of the user. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Link, useLocation, useRoute } from "wouter-preact";
import { live, setPaused } from "../api/live.ts";
import { request } from "../api/request.ts";
import { useStore } from "../api/store.ts";
import { useTexts } from "../texts/index.ts";
import { useShortcuts } from "./keys.ts";
import { Palette } from "./palette.tsx";
import { prefer, preferences, type Theme } from "./preferences.ts";
import { ShortcutHelp } from "./shortcut-help.tsx";
import { useStaff } from "./staff.ts";
import { Toasts } from "./toasts.tsx";

/** With the second key of its shortcut: G, then that. */
const pages = [
  ["overview", "/", "o"],
  ["dead", "/dead", "d"],
  ["players", "/players", "p"],
  ["orders", "/orders", "r"],
  ["points", "/points", "t"],
  ["matchmaking", "/matchmaking", "m"],
  ["audit", "/audit", "a"],
  ["keys", "/keys", "k"],
] as const;

export function usePages() {
  const { can } = useStaff();
  return pages.filter(([name]) => name !== "keys" || can("ADMIN"));
}

export function Layout({ children }: { readonly children: ComponentChildren }) {
  const t = useTexts();
  const [location, navigate] = useLocation();
  const [isSearching, setSearching] = useState(false);
  const [isHelping, setHelping] = useState(false);
  const main = useRef<HTMLElement>(null);
  const visible = usePages();
  useShortcuts({
    "/": () => setSearching(true),
    "?": () => setHelping(true),
    ...Object.fromEntries(visible.map(([, path, key]) => [`g ${key}`, () => navigate(path)])),
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setSearching(true);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  // A new page is read from its top, and the next Tab begins in it.
  useLayoutEffect(() => main.current?.focus({ preventScroll: true }), [location]);

  return (
    <div class="frame">
      <a class="skip" href="#main">
        {t.skip}
      </a>
      <header class="bar">
        <Link href="/" class="brand">
          <span class="mark" aria-hidden="true" />
          Todoke
        </Link>
        <button type="button" class="search" onClick={() => setSearching(true)}>
          <span>{t.searchAny}</span>
          <kbd>/</kbd>
        </button>
        <LiveToggle />
        <PersonMenu />
      </header>
      <nav class="pages" aria-label={t.pages}>
        {visible.map(([name, path]) => (
          <PageLink key={name} path={path}>
            {t.nav[name]}
          </PageLink>
        ))}
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      <Toasts />
      {isSearching && <Palette close={() => setSearching(false)} />}
      {isHelping && <ShortcutHelp close={() => setHelping(false)} />}
    </div>
  );
}

function PageLink({ path, children }: { readonly path: string; readonly children: string }) {
  const [isExact] = useRoute(path);
  const [isBelow] = useRoute(`${path}/*`);
  const isHere = isExact || (path !== "/" && isBelow);
  return (
    <Link href={path} {...(isHere && { "aria-current": "page" as const })}>
      {children}
    </Link>
  );
}

/** "Live" while changes arrive by themselves, "Reconnecting" while the page polls, "Connecting" at the beginning, or paused. */
function LiveToggle() {
  const t = useTexts();
  const { isPaused, isConnected, since } = useStore(live);
  const time = new Date(since).toLocaleTimeString(t.locale, { hourCycle: "h23" });
  const look = isPaused ? "is-paused" : isConnected ? "is-live" : "is-lost";
  const isLost = !isPaused && isConnected === false;
  return (
    <button
      type="button"
      class={`live ${look}`}
      aria-pressed={!isPaused}
      title={isPaused ? t.resume : isLost ? t.lostSince(time) : t.pause}
      onClick={() => setPaused(!isPaused)}
    >
      <span class="dot" aria-hidden="true" />
      <span class="live-text" role="status">
        {isPaused ? t.pausedSince(time) : isConnected ? t.live : isLost ? t.reconnecting : t.connecting}
      </span>
    </button>
  );
}

const themes: readonly Theme[] = ["auto", "light", "dark"];

function PersonMenu() {
  const t = useTexts();
  const { me } = useStaff();
  const { theme, language } = useStore(preferences);
  const role = me?.roles.findLast((each) => each !== "USER") ?? "";
  const logOut = async () => {
    const { logout_url = "/" } = await request<{ logout_url?: string }>("/logout", { method: "POST" });
    location.assign(logout_url);
  };
  return (
    <details class="person">
      <summary>
        <bdi>{me?.display_name ?? me?.email ?? me?.user_id}</bdi> <span class="tag plain">{role}</span>
      </summary>
      <div class="menu">
        <label>
          {t.language}
          <select
            value={language}
            onChange={({ currentTarget }) => prefer({ language: currentTarget.value as "en" | "ja" })}
          >
            <option value="en">English</option>
            <option value="ja">日本語</option>
          </select>
        </label>
        <label>
          {t.theme}
          <select value={theme} onChange={({ currentTarget }) => prefer({ theme: currentTarget.value as Theme })}>
            {themes.map((each) => (
              <option key={each} value={each}>
                {t.themes[each]}
              </option>
            ))}
          </select>
        </label>
        <a href="/docs">{t.apiReference}</a>
        <button type="button" onClick={logOut}>
          {t.logOut}
        </button>
      </div>
    </details>
  );
}
