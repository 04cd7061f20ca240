/** The gateway's signing key in tests, and tokens as the gateway signs them. */
import { newSigningKey, openSigner } from "@todoke/http";

export const signingKey = newSigningKey("k1");

export const { tokenFor } = openSigner({ issuer: "gateway-bff", key: signingKey });
