/** The environment as settings are read from it. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The first of the variables that is set, or the default. An empty variable counts as not set. */
export function readSetting(env: Env, names: readonly [string, ...string[]], byDefault = ""): string {
  const variable = names.find((each) => env[each]);
  const value = (variable && env[variable]) || byDefault;
  recordings.get(env)?.set(names[0], { value, variable });
  return value;
}

/** A setting that was read. */
export interface RecordedSetting {
  /** Undefined or empty: it is not set, and has no default. */
  readonly value: string | undefined;
  /** The variable that decides. It may be another one, which is shared by services; undefined: the value is the default. */
  readonly variable: string | undefined;
}

const recordings = new WeakMap<Env, Map<string, RecordedSetting>>();

/** Records what is read from the returned environment, so that the settings of a service are known by reading them. */
export function recordSettings(env: Env): {
  readonly env: Env;
  readonly settings: ReadonlyMap<string, RecordedSetting>;
} {
  const settings = new Map<string, RecordedSetting>();
  const recorded = new Proxy(env, {
    get(target, name) {
      if (typeof name !== "string") return Reflect.get(target, name);
      const value = target[name];
      if (!settings.has(name)) settings.set(name, { value, variable: value ? name : undefined });
      return value;
    },
  });
  recordings.set(recorded, settings);
  return { env: recorded, settings };
}

/** The entries of a setting, separated by commas. */
export const readList = (text = ""): string[] =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
