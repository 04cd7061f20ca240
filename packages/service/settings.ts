/** Reads settings from the environment. An error is a sentence that is pushed, never thrown, so that all are reported at once. */
import { isIP } from "node:net";
import { type Env, readList, readSetting } from "@todoke/http";

/** The variable of one service: GATEWAY_BFF_PORT. */
export const envName = (service: string, what: string): string =>
  `${service}_${what}`.toUpperCase().replaceAll("-", "_");

/** The variables of a setting. The first that is set decides: that of a worker, then that of its service. */
type Variables = readonly [string, ...string[]];

/** Reads integers within bounds, each with its default. */
export const integerReader =
  (env: Env, errors: string[]) =>
  (name: string | Variables, byDefault: number, [min, max]: readonly [number, number]): number => {
    const names: Variables = typeof name === "string" ? [name] : name;
    const text = readSetting(env, names, String(byDefault));
    const number = Number(text);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    const variable = setVariable(env, names);
    errors.push(`${variable} is ${JSON.stringify(text)} and should be a whole number from ${min} to ${max}`);
    return byDefault;
  };

export function readBoolean(env: Env, errors: string[], name: string, byDefault = false): boolean {
  return readFirstBoolean(env, errors, [name], byDefault);
}

/** Reads the first of the variables that is set. */
export function readFirstBoolean(env: Env, errors: string[], names: Variables, byDefault = false): boolean {
  const text = readSetting(env, names, String(byDefault));
  if (text !== "true" && text !== "false") errors.push(`${setVariable(env, names)} should be true or false`);
  return text === "true";
}

/** The variable that decides: the first that is set. */
const setVariable = (env: Env, names: Variables): string | undefined => names.find((name) => env[name]);

const hostName = /^[a-z0-9]([a-z0-9.-]{0,252}[a-z0-9])?$/i;

/** An address to listen on: loopback, so that other machines reach a listener only if an operator decides so. */
function readHost(env: Env, errors: string[], names: Variables): string {
  const host = readSetting(env, names, "127.0.0.1");
  if (!isIP(host) && !hostName.test(host))
    errors.push(
      `${setVariable(env, names)} is ${JSON.stringify(host)} and should be an address of this machine without a port, ` +
        "such as 10.0.0.7, or 0.0.0.0 for all of them",
    );
  return host;
}

/** Where the listeners of a service are: <SERVICE>_HOST and <SERVICE>_OPS_HOST, or TODOKE_HOST and TODOKE_OPS_HOST. */
export const readHosts = (service: string, env: Env, errors: string[] = []) => ({
  host: readHost(env, errors, [envName(service, "HOST"), "TODOKE_HOST"]),
  opsHost: readHost(env, errors, [envName(service, "OPS_HOST"), "TODOKE_OPS_HOST"]),
});

/** Whether only this machine can reach a listener on the host. */
export const isLoopbackHost = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host);

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
