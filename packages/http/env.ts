/** The environment as settings are read from it. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The entries of a setting, separated by commas. */
export const readList = (text = ""): string[] =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
