/** Reads settings from the environment. An error is a sentence that is pushed, never thrown, so that all are reported at once. */
import { type Env, readList } from "@todoke/http";

/** The variable of one service: GATEWAY_BFF_PORT. */
export const envName = (service: string, what: string): string =>
  `${service}_${what}`.toUpperCase().replaceAll("-", "_");

/** Reads integers within bounds, each with its default. */
export const integerReader =
  (env: Env, errors: string[]) =>
  (name: string, byDefault: number, [min, max]: readonly [number, number]): number => {
    const number = Number(env[name] || byDefault);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    errors.push(`${name} is ${JSON.stringify(env[name])} and should be a whole number from ${min} to ${max}`);
    return byDefault;
  };

export function readBoolean(env: Env, errors: string[], name: string, byDefault = false): boolean {
  const text = env[name] || String(byDefault);
  if (text !== "true" && text !== "false") errors.push(`${name} should be true or false`);
  return text === "true";
}

/** Several while a secret is being replaced: the first is used, all are accepted. Errors never contain a value. */
export function readSecrets(env: Env, errors: string[], name: string, { min = 0 } = {}): Buffer[] {
  const texts = readList(env[name]);
  if (texts.length < min || !texts.every((text) => /^[\w-]{43}$/.test(text)))
    errors.push(
      `${name} should be 32 random bytes in base64url, or several separated by commas: ` +
        "`openssl rand 32 | basenc --base64url | tr -d =` makes one",
    );
  return texts.map((text) => Buffer.from(text, "base64url"));
}
