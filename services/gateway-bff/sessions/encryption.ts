/**
 * Encrypts what a store must not be able to read: the provider's tokens and pending logins. AES-256-GCM.
 *
 * A sealed value is bound to its name, so a writer of the store cannot give one session the tokens of another. The first
 * secret seals and all of them open: to replace a secret, put a new one in front and drop the old one when nothing it
 * sealed is live. A value that was changed, or whose secret is gone, opens as undefined.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

export interface Encryption {
  seal(value: unknown, name: string): Buffer;
  open(sealed: Buffer, name: string): unknown;
}

// Layout of a sealed value: key ID, nonce, tag, ciphertext. Random 96-bit nonces are safe for 2^32 values per key, which
// is more than a year at a hundred logins per second.
const [idBytes, keyBytes, nonceBytes, tagBytes] = [8, 32, 12, 16];
const ciphertextStart = idBytes + nonceBytes + tagBytes;

/** A provider's three tokens have a few kilobytes. */
const plainBytesMax = 64 * 1024;

export function openEncryption(secrets: readonly Buffer[]): Encryption {
  if (secrets.some((secret) => secret.length !== keyBytes)) throw new Error(`a secret should have ${keyBytes} bytes`);
  const keys = secrets.map(deriveKey);
  const [first] = keys;
  if (!first) throw new Error("sessions need a secret to encrypt with");

  return {
    seal(value, name) {
      const plain = Buffer.from(JSON.stringify(value) ?? "null");
      if (plain.length > plainBytesMax) throw new RangeError(`${plain.length} bytes are too many to store`);
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", first.key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(name));
      const encrypted = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([first.id, nonce, cipher.getAuthTag(), encrypted]);
    },

    open(sealed, name) {
      const key = keys.find(({ id }) => id.equals(sealed.subarray(0, idBytes)));
      if (!key || sealed.length < ciphertextStart) return undefined;
      const nonce = sealed.subarray(idBytes, idBytes + nonceBytes);
      const decipher = createDecipheriv("aes-256-gcm", key.key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(Buffer.from(name));
      decipher.setAuthTag(sealed.subarray(idBytes + nonceBytes, ciphertextStart));
      try {
        return JSON.parse(
          Buffer.concat([decipher.update(sealed.subarray(ciphertextStart)), decipher.final()]).toString(),
        );
      } catch {
        return undefined; // Changed, or sealed under another name.
      }
    },
  };
}

/** Derived, so that the ID reveals nothing about the key, and other uses of the secret have other keys. */
function deriveKey(secret: Buffer): { readonly id: Buffer; readonly key: Buffer } {
  const derived = Buffer.from(hkdfSync("sha256", secret, "", "todoke gateway-bff sessions", idBytes + keyBytes));
  return { id: derived.subarray(0, idBytes), key: derived.subarray(idBytes) };
}
