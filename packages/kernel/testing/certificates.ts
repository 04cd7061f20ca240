/** Certificates for tests: a CA, and certificates that it signs, with any names and dates. X.509 in DER, with EC keys. */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export interface TestCa extends Disposable {
  /** The folder of all its files. Every user may read it: PostgreSQL does not run as root. */
  readonly folder: string;
  /** The file of its certificate. */
  readonly file: string;
  /** Signs a certificate for these host names and addresses. By default it is valid from an hour ago for a day. */
  issue(name: string, names: readonly string[], validHours?: readonly [from: number, to: number]): CertificateFiles;
}

export function createCa(name: string): TestCa {
  const folder = mkdtempSync(join(tmpdir(), "todoke-test-ca-"));
  chmodSync(folder, 0o755);
  const ca = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const caCert = createCertificate({
    subject: name,
    issuer: name,
    key: ca.privateKey,
    signer: ca.privateKey,
    isCa: true,
  });
  const file = join(folder, "ca.pem");
  writeFileSync(file, caCert);
  return {
    folder,
    file,
    issue(subject, names, validHours) {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const files = { cert: join(folder, `${subject}.pem`), key: join(folder, `${subject}.key`) };
      const hours = validHours && { validHours };
      writeFileSync(
        files.cert,
        createCertificate({ subject, issuer: name, key: privateKey, signer: ca.privateKey, names, ...hours }),
      );
      writeFileSync(files.key, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
      return files;
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

interface Certificate {
  readonly subject: string;
  readonly issuer: string;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  readonly isCa?: boolean;
  readonly names?: readonly string[];
  readonly validHours?: readonly [from: number, to: number];
}

function createCertificate({
  subject,
  issuer,
  key,
  signer,
  isCa = false,
  names = [],
  validHours,
}: Certificate): string {
  const [from, to] = validHours ?? [-1, 24];
  const publicKey = createPublicKey(key.export({ type: "pkcs8", format: "pem" }) as string);
  const content = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    commonName(issuer),
    sequence(time(from), time(to)),
    commonName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(isCa ? caExtension : namesExtension(names))),
  );
  const signature = sign("sha256", content, signer);
  const der = sequence(content, ecdsaWithSha256, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").replace(/.{64}/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: readonly Uint8Array[]) => tagged(0x30, ...parts);
const integer = (value: Uint8Array) => tagged(0x02, value);
const object = (hex: string) => tagged(0x06, Buffer.from(hex, "hex"));

const ecdsaWithSha256 = sequence(object("2a8648ce3d040302"));
const commonName = (name: string) =>
  sequence(tagged(0x31, sequence(object("550403"), tagged(0x0c, Buffer.from(name)))));
const caExtension = sequence(
  object("551d13"),
  tagged(0x01, Buffer.from([0xff])),
  tagged(0x04, sequence(tagged(0x01, Buffer.from([0xff])))),
);

function namesExtension(names: readonly string[]): Buffer {
  const entries = names.map((name) =>
    isIP(name) === 4 ? tagged(0x87, Buffer.from(name.split(".").map(Number))) : tagged(0x82, Buffer.from(name)),
  );
  return sequence(object("551d11"), tagged(0x04, sequence(...entries)));
}

/** UTCTime: "261118120000Z" */
function time(hoursFromNow: number): Buffer {
  const text = new Date(Date.now() + hoursFromNow * 3_600_000).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x17, Buffer.from(text.slice(2)));
}
