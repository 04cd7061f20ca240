/** The environment as settings are read from it. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The first of the variables that is set, or the default. An empty variable counts as not set. */
export function readSetting(env: Env, names: readonly string[], byDefault = ""): string {
  const name = names.find((each) => env[each]);
  return (name && env[name]) || byDefault;
}

/** The entries of a setting, separated by commas. */
export const readList = (text = ""): string[] =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
