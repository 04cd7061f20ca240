/** Settings from the environment. A fault is a sentence that is pushed, never thrown: all of them are told at once. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The variable of one service: GATEWAY_BFF_PORT. */
export const variableOf = (service: string, what: string): string =>
  `${service.toUpperCase().replaceAll("-", "_")}_${what}`;

/** Reads whole numbers within bounds, each with what it is where nothing is said. */
export const wholeNumbers =
  (env: Env, faults: string[]) =>
  (name: string, usual: number, [min, max]: readonly [number, number]): number => {
    const number = Number(env[name] || usual);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    faults.push(`${name} is ${JSON.stringify(env[name])} and should be a whole number from ${min} to ${max}`);
    return usual;
  };
