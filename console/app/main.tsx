/** The entry of the console. */
import { QueryClient, QueryClientProvider } from "@tanstack/preact-query";
import { render } from "preact";
import { Router } from "wouter-preact";
import { startLive } from "./api/live.ts";
import { useStore } from "./api/store.ts";
import { App } from "./app.tsx";
import { applyPreferences, preferences } from "./parts/preferences.ts";
import { TextsContext, texts } from "./texts/index.ts";
import "./style/base.css";
import "./style/layout.css";
import "./style/parts.css";
import "./style/pages.css";

// An answer is shown for as long as the next one takes, and forgotten five minutes after its page was left.
const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: 1_000, gcTime: 300_000 } } });

function Root() {
  const { language } = useStore(preferences);
  return (
    <TextsContext.Provider value={texts[language]}>
      <QueryClientProvider client={client}>
        <Router base="/console">
          <App />
        </Router>
      </QueryClientProvider>
    </TextsContext.Provider>
  );
}

applyPreferences();
startLive(client);
render(<Root />, document.getElementById("app") as HTMLElement);
