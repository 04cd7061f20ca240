/**
 * Creates an API key at the services that will accept it. A service that fails is named; the same request again creates the key
 * there too, and changes nothing at the others.
 */
import { problems } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { type Answers, answersOf, deployedServices } from "../staff/ask-services.ts";
import { postTo, type StaffCaller } from "../staff/post-to.ts";

export interface CreateKeyRequest extends StaffCaller {
  readonly key: string;
  readonly services: readonly string[];
  /** As the services expect it. */
  readonly body: object;
}

/** If all services fail, the refusal of the first is thrown. */
export const createKey =
  (upstreams: Deps["upstreams"]) =>
  async ({ services, ...request }: CreateKeyRequest): Promise<Answers> => {
    const deployed = deployedServices(upstreams);
    const targets = services.map((name) => {
      const found = deployed.find(([each]) => each === name);
      if (!found) throw problems.invalidField("body.services", `has ${name}, which accepts no keys here`);
      return found;
    });
    const create = postTo({ ...request, path: "/v1/admin/keys" });
    const answers = await answersOf(targets.map(([name, upstream]) => [name, () => create(upstream)]));
    const [first] = answers.failed;
    if (first && answers.answers.length === 0) throw first.error;
    return answers;
  };
