/**
 * The URLs of servers in the environment. Beside EVENT_BUS_URL there may be EVENT_BUS_CA_FILE, EVENT_BUS_REPLICAS and so on: each is a
 * parameter of the URL, and the URL that this file returns has them all. Everything that connects by it then connects in the
 * same way.
 */
import type { Env } from "@todoke/http";
import { addParameters, checkTlsFiles, parseServerUrl, tlsFilesOf } from "@todoke/kernel/server-url";

interface Engine {
  readonly name: string;
  /** The settings beside the URL, and the parameters that they become: CA_FILE is that of EVENT_BUS_CA_FILE. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Further parameters, of the engine's client library. Undefined: not checked. */
  readonly others?: readonly string[];
}

const tls = { CA_FILE: "ca_file", CERT_FILE: "cert_file", KEY_FILE: "key_file" };
const postgres: Engine = {
  name: "PostgreSQL",
  parameters: { CA_FILE: "sslrootcert", CERT_FILE: "sslcert", KEY_FILE: "sslkey", DIRECT_URL: "direct_url" },
};
const nats: Engine = {
  name: "NATS",
  parameters: {
    ...tls,
    CREDS_FILE: "creds_file",
    REPLICAS: "replicas",
    MAX_BYTES: "max_bytes",
    NAMESPACE: "namespace",
  },
  others: [],
};
const rabbitmq: Engine = {
  name: "RabbitMQ",
  parameters: { ...tls, NAMESPACE: "namespace", QUEUES: "queues" },
  others: ["heartbeat", "connection_timeout", "channel_max"],
};
const redis: Engine = {
  name: "Redis",
  parameters: { ...tls, SENTINEL: "sentinel", SENTINEL_PASSWORD: "sentinel_password" },
  others: [],
};
const engines: Readonly<Record<string, Engine>> = {
  postgres,
  postgresql: postgres,
  nats,
  tls: nats,
  amqp: rabbitmq,
  amqps: rabbitmq,
  redis,
  rediss: redis,
};

/** `settingOf("EVENT_BUS_URL", "CA_FILE")` is EVENT_BUS_CA_FILE. */
const settingOf = (variable: string, name: string): string => variable.replace(/URL$/, name);

/** Every setting that may stand beside the URL of a database, bus or Redis; none for any other variable. */
export function listSettingsBeside(variable: string): readonly string[] {
  const [, kind = ""] = /(DATABASE|BUS|REDIS)_URL$/.exec(variable) ?? [];
  const possible = { DATABASE: [postgres], BUS: [postgres, nats, rabbitmq], REDIS: [redis] }[kind] ?? [];
  const names = new Set(possible.flatMap(({ parameters }) => Object.keys(parameters)));
  return [...names].map((name) => settingOf(variable, name));
}

/** The URL with the settings beside it; undefined if the variable is not set. */
export function readServerUrl(env: Env, variable: string): string | undefined {
  const url = env[variable] || undefined;
  const engine = engines[parseServerUrl(url ?? "")?.scheme ?? ""];
  if (!url || !engine) return url;
  const settings = Object.entries(engine.parameters).map(([name, parameter]) => {
    const setting = settingOf(variable, name);
    return [parameter, name === "DIRECT_URL" ? readServerUrl(env, setting) : env[setting]] as const;
  });
  return addParameters(url, Object.fromEntries(settings));
}

/** Every error of the URL and of the settings beside it, a sentence each. None contains the URL, which may have a password. */
export function checkServerUrl(env: Env, variable: string, schemes: readonly string[]): string[] {
  if (!env[variable]) return findIneffective(env, variable);
  const given = parseServerUrl(env[variable]);
  const complete = parseServerUrl(readServerUrl(env, variable) ?? "");
  const isDatabase = schemes.includes("postgres") && schemes.length === 2;
  if (!given || !complete || (given.hosts.length === 0 && !isDatabase))
    return [`${variable} is not a URL: it should look like ${schemes[0]}://user:password@host:port/name`];
  const engine = engines[given.scheme];
  if (!engine || !schemes.includes(given.scheme))
    return [`${variable} begins with ${given.scheme}:// and should begin with ${schemes.join("://, ")}://`];
  return [
    ...checkParameters(variable, engine, complete.parameters),
    ...findIneffective(env, variable, engine),
    ...checkTls(variable, given.scheme, complete),
    ...checkNumbers(variable, complete.parameters),
    ...(engine === redis ? checkSentinel(variable, complete) : []),
    ...(engine === postgres ? checkServerUrl(env, settingOf(variable, "DIRECT_URL"), schemes) : []),
    ...(engine === postgres ? checkSessionAttributes(variable, complete.parameters) : []),
  ];
}

type Parsed = NonNullable<ReturnType<typeof parseServerUrl>>;

/** Settings beside the URL that its engine does not have: they would be ignored without a word. */
function findIneffective(env: Env, variable: string, engine?: Engine): string[] {
  const known = Object.keys(engine?.parameters ?? {}).map((name) => settingOf(variable, name));
  const others = listSettingsBeside(variable).filter((setting) => env[setting] && !known.includes(setting));
  const why = engine ? `${variable} is that of ${engine.name}, which does not have it` : `${variable} is not`;
  return others.map((setting) => `${setting} is set, and ${why}: unset it`);
}

/** Unknown parameters, and those that are given twice. */
function checkParameters(variable: string, { name, parameters, others }: Engine, given: URLSearchParams): string[] {
  const known = [...Object.values(parameters), ...(others ?? [])];
  const unknown = others ? [...new Set(given.keys())].filter((key) => !known.includes(key)) : [];
  const twice = Object.entries(parameters).filter(([, parameter]) => given.getAll(parameter).length > 1);
  return [
    ...unknown.map(
      (key) => `${variable} has the parameter ${key}, which ${name} does not have: use ${known.join(", ")}`,
    ),
    ...twice.map(
      ([setting, key]) => `${settingOf(variable, setting)} is set, and ${variable} has ${key} too: keep one`,
    ),
  ];
}

/** The schemes whose server speaks either TLS or not, and what they are called with TLS. */
const withTls: Readonly<Record<string, string>> = { amqp: "amqps", redis: "rediss" };

function checkTls(variable: string, scheme: string, url: Parsed): string[] {
  const files = tlsFilesOf(url);
  const nameOf = (part: "ca" | "cert" | "key") => settingOf(variable, `${part.toUpperCase()}_FILE`);
  const errors = checkTlsFiles(files, nameOf);
  const first = (["ca", "cert"] as const).find((part) => files[part]);
  if (first && withTls[scheme])
    errors.push(`${nameOf(first)} is set, and ${variable} has no TLS: begin it with ${withTls[scheme]}://`);
  if (first && url.parameters.get("sslmode") === "disable")
    errors.push(`${nameOf(first)} is set, and ${variable} has sslmode=disable: use sslmode=verify-full`);
  return errors;
}

function checkNumbers(variable: string, parameters: URLSearchParams): string[] {
  const bounds: [setting: string, parameter: string, max: number][] = [
    ["REPLICAS", "replicas", 5],
    ["MAX_BYTES", "max_bytes", Number.MAX_SAFE_INTEGER],
  ];
  return bounds.flatMap(([setting, parameter, max]) => {
    const text = parameters.get(parameter);
    const number = Number(text);
    if (text === null || (Number.isInteger(number) && number >= 1 && number <= max)) return [];
    return [`${settingOf(variable, setting)} is ${JSON.stringify(text)} and should be a whole number from 1 to ${max}`];
  });
}

function checkSentinel(variable: string, { hosts, parameters }: Parsed): string[] {
  if (hosts.length <= 1 || parameters.get("sentinel")) return [];
  return [
    `${variable} has several addresses: name the primary of these Sentinels in ${settingOf(variable, "SENTINEL")}`,
  ];
}

function checkSessionAttributes(variable: string, parameters: URLSearchParams): string[] {
  const wanted = parameters.get("target_session_attrs") ?? "primary";
  if (["primary", "read-write"].includes(wanted)) return [];
  return [`${variable} has target_session_attrs=${wanted}: only primary and read-write are supported`];
}
