/** Schemas that several routes share. */
import { named } from "@todoke/contracts/api";
import { Type } from "typebox";

export { Time, UserId } from "../upstreams/user-view.ts";

/** A response that the service's own API document describes. */
export const PassThroughBody = Type.Object(
  {},
  {
    title: "ServiceResponse",
    additionalProperties: true,
    description: "The response of the service, unchanged. Its own document describes it, under the same operationId.",
  },
);

export const FailedServices = Type.Array(named("FailedService", { service: Type.String(), detail: Type.String() }), {
  description: "The services that did not answer.",
});
