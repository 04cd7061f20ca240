/** Every text of the console, in each language. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { en, type Texts } from "./en.ts";
import { ja } from "./ja.ts";

export type { Texts } from "./en.ts";
export const texts: Readonly<Record<"en" | "ja", Texts>> = { en, ja };
export const TextsContext = createContext<Texts>(en);
export const useTexts = (): Texts => useContext(TextsContext);
