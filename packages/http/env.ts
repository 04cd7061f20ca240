/** The environment as settings are read from it. */
export type Env = Readonly<Record<string, string | undefined>>;
