/** Looks up unfinished deliveries of an event in a bus in PostgreSQL. Other buses have no look-up by event. */
import { findBus } from "@todoke/service";
import type { WhySource } from "@todoke/service/why";
import { readWaitingDeliveries } from "../bus.ts";
import { findRunningDev } from "../data-folder.ts";
import { listSubjects } from "../select-services.ts";
import type { Env, Service } from "../services.ts";

export async function busSources(services: readonly Service[], given: Env): Promise<readonly WhySource[]> {
  const dev = (await findRunningDev())?.databaseUrl;
  const env = { ...(dev !== undefined && { DATABASE_URL: dev }), ...given };
  const urls = listSubjects(services).flatMap((subject) => findBus(subject, env)?.url ?? []);
  return [...new Set(urls)].map((url) => ({
    service: "bus",
    async find(question) {
      const links = "links" in question ? question.links : [{ kind: "event", id: question.id }];
      const ids = links.filter(({ kind, id }) => kind === "event" && uuid.test(id)).map(({ id }) => id);
      const deliveries = ids.length > 0 ? ((await readWaitingDeliveries(url, ids)) ?? []) : [];
      const entries = deliveries.map((delivery) => ({
        kind: "delivery",
        id: delivery.event_id,
        at: delivery.published_at,
        state: delivery.status,
        attempt: delivery.attempt_count,
        process: delivery.worker,
        trace_id: null,
        detail: `to consumer ${delivery.consumer}`,
        error: delivery.last_error,
        next_retry_at: delivery.attempt_count > 0 ? delivery.due_at : null,
        blocked_by: null,
        dead_letter: null,
        links: [],
      }));
      return { entries, failed: [] };
    },
  }));
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
