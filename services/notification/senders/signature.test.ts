import { expect, test } from "vitest";
import { parseSecret, signatureHeaders } from "./signature.ts";

test("the signature matches the example of the specification", () => {
  const secret = parseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  if (!secret) throw new Error("the specification's secret was refused");
  const signed = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: '{"test": 2432232314}' };
  expect(signatureHeaders(secret, signed)).toEqual({
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  });
});
