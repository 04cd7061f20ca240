/**
 * Creates the secrets of deploy/compose.yaml, a file each, in the folder given as argument. The second argument is the `todoke` command.
 * A file that is there stays as it is, so that a restart keeps passwords and keys.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder = "", ...todoke] = process.argv.slice(2);
const [program = "todoke", ...programArgs] = todoke;
const services = ["account", "entitlement", "gateway_bff", "matchmaking", "notification", "orders", "points"];
const newPassword = () => randomBytes(24).toString("hex");
const newKey = () => randomBytes(32).toString("base64url");

mkdirSync(folder, { recursive: true });

/** A crash leaves a whole file or none. */
function create(name: string, content: () => string, mode = 0o444): string {
  const file = join(folder, name);
  if (!existsSync(file)) {
    writeFileSync(`${file}.new`, content());
    chmodSync(`${file}.new`, mode);
    renameSync(`${file}.new`, file);
  }
  return readFileSync(file, "utf8");
}

create("POSTGRES_PASSWORD", newPassword);
create("KEYCLOAK_PASSWORD", newPassword);
create("GRAFANA_PASSWORD", newPassword);
create("OIDC_CLIENT_SECRET", newPassword);
create("GATEWAY_BFF_SECRET", newKey);
create("MATCHMAKING_TICKET_SECRET", newKey);

const pair = create("key-pair", () =>
  execFileSync(program, [...programArgs, "keys", "pair", "k1"], { encoding: "utf8" }),
);
const keyOf = (name: string) => new RegExp(`^${name}=(.+)$`, "m").exec(pair)?.[1] ?? "";
create("GATEWAY_BFF_TOKEN_KEY", () => keyOf("GATEWAY_BFF_TOKEN_KEY"));
create("TODOKE_TOKEN_KEYS", () => keyOf("TODOKE_TOKEN_KEYS"));

const rabbitmq = create("RABBITMQ_PASSWORD", newPassword);
create("POINTS_RESERVATION_BUS_URL", () => `amqp://todoke:${rabbitmq}@rabbitmq:5672`);

// Clients read pgpass, which must be readable by its owner only: the user of the image. The server reads the statements.
const roles = services.flatMap((service) => [`todoke_${service}`, `todoke_${service}_owner`]);
const pgpass = create("pgpass", () => roles.map((role) => `*:*:*:${role}:${newPassword()}\n`).join(""), 0o600);
if (process.getuid?.() === 0) chownSync(join(folder, "pgpass"), 65532, 65532);
const passwords = pgpass.matchAll(/:(\w+):(\w+)$/gm);
create("role-passwords.sql", () =>
  [...passwords].map(([, role, password]) => `alter role ${role} password '${password}';\n`).join(""),
);
console.log(`The secrets are in ${folder}.`);
