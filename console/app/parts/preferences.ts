/** Language and theme of this browser. Both follow the browser until one is chosen. */
import { createStore } from "../api/store.ts";

type Language = "en" | "ja";
export type Theme = "auto" | "light" | "dark";

export interface Preferences {
  readonly language: Language;
  readonly theme: Theme;
}

const storageKey = "todoke-console";

function read(): Preferences {
  const browser = navigator.language.startsWith("ja") ? "ja" : "en";
  try {
    const { language, theme } = JSON.parse(localStorage.getItem(storageKey) ?? "{}");
    return {
      language: language === "en" || language === "ja" ? language : browser,
      theme: theme === "light" || theme === "dark" ? theme : "auto",
    };
  } catch {
    return { language: browser, theme: "auto" };
  }
}

export const preferences = createStore<Preferences>(read());

export function applyPreferences(): void {
  const { language, theme } = preferences.get();
  document.documentElement.lang = language;
  document.documentElement.dataset.theme = theme;
}

export function prefer(changed: Partial<Preferences>): void {
  preferences.set({ ...preferences.get(), ...changed });
  localStorage.setItem(storageKey, JSON.stringify(preferences.get()));
  applyPreferences();
}
