/**
 * What a store must not be able to read: the provider's tokens, and log-ins that are under way. AES-256-GCM.
 *
 * What is sealed for one name cannot be opened as another's: whoever can write to the store cannot give one session the
 * tokens of another. The first secret seals and all of them open, so that a secret is replaced by putting a new one in
 * front, and the old one is dropped once nothing that it sealed is alive. What was sealed with a secret that is gone, or
 * was changed, is opened as nothing.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

export interface Encryption {
  seal(value: unknown, name: string): Buffer;
  open(sealed: Buffer, name: string): unknown;
}

// A sealed value is: the key's id, nonce, tag, what was encrypted. Random nonces of 96 bits are safe for 2^32 values of a
// key; at a hundred log-ins a second that is more than a year.
const [idBytes, keyBytes, nonceBytes, tagBytes] = [8, 32, 12, 16];
const openedAt = idBytes + nonceBytes + tagBytes;

/** A provider's three tokens have some kilobytes. */
const plainBytesMax = 64 * 1024;

export function openEncryption(secrets: readonly Buffer[]): Encryption {
  if (secrets.some((secret) => secret.length !== keyBytes)) throw new Error(`a secret should have ${keyBytes} bytes`);
  const keys = secrets.map(keyOf);
  const [first] = keys;
  if (!first) throw new Error("sessions need a secret to encrypt with");

  return {
    seal(value, name) {
      const plain = Buffer.from(JSON.stringify(value) ?? "null");
      if (plain.length > plainBytesMax) throw new RangeError(`${plain.length} bytes are too many to be kept`);
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", first.key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(name));
      const encrypted = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([first.id, nonce, cipher.getAuthTag(), encrypted]);
    },

    open(sealed, name) {
      const key = keys.find(({ id }) => id.equals(sealed.subarray(0, idBytes)));
      if (!key || sealed.length < openedAt) return undefined;
      const nonce = sealed.subarray(idBytes, idBytes + nonceBytes);
      const decipher = createDecipheriv("aes-256-gcm", key.key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(Buffer.from(name));
      decipher.setAuthTag(sealed.subarray(idBytes + nonceBytes, openedAt));
      try {
        return JSON.parse(Buffer.concat([decipher.update(sealed.subarray(openedAt)), decipher.final()]).toString());
      } catch {
        return undefined; // It is not what was sealed under this name.
      }
    },
  };
}

/** Derived, so that the id tells nothing of the key, and whatever else the secret may be used for has another key. */
function keyOf(secret: Buffer): { readonly id: Buffer; readonly key: Buffer } {
  const derived = Buffer.from(hkdfSync("sha256", secret, "", "todoke gateway-bff sessions", idBytes + keyBytes));
  return { id: derived.subarray(0, idBytes), key: derived.subarray(idBytes) };
}
