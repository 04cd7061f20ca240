import { expect, test } from "vitest";
import { openRabbitmqBus } from "./index.ts";
import { parseRabbitmqUrl } from "./url.ts";

test("a URL has several nodes, the namespace and the names of queues; the rest is for the client", () => {
  const parameters = "namespace=staging&queues=points%3AreservationQueue%2C+notification%3Anotify&heartbeat=5";
  expect(parseRabbitmqUrl(`amqp://user:p%40ss@one:5672,two:5673/vhost?${parameters}`)).toEqual({
    url: "amqp://user:p%40ss@one:5672/vhost?heartbeat=5",
    hosts: ["one:5672", "two:5673"],
    namespace: "staging",
    queues: { points: "reservationQueue", notification: "notify" },
  });
});

test("the name of a host is sent with TLS if there is one host, which is not an address", () => {
  expect(parseRabbitmqUrl("amqps://one").tls).toEqual({ servername: "one" });
  expect(parseRabbitmqUrl("amqps://127.0.0.1").tls).toBeUndefined();
  expect(parseRabbitmqUrl("amqps://one,two").tls).toBeUndefined();
});

test.each(["", "amqp://", "amqp://user:secret@one,,two"])(
  "the invalid URL %j is rejected, and the error does not repeat it",
  (url) => {
    expect(() => parseRabbitmqUrl(url)).toThrow(/^the URL of RabbitMQ is invalid$/);
  },
);

test.each(["points", "points:", "points:a:b", "points:a,"])("the queue names %j are rejected", async (queues) => {
  const url = `amqp://127.0.0.1:1?${new URLSearchParams({ queues })}`;
  await expect(openRabbitmqBus({ url, name: "test" })).rejects.toThrow("should look like consumer:queue");
});
