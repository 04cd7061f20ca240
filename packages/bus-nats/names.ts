/**
 * Names on the server. Each producing service has a stream, named after the first token of the subject: "entitlement.events" is
 * in the stream ENTITLEMENT, which takes "entitlement.>".
 *
 * A namespace separates buses on one server: in the namespace "staging" the stream is STAGING=ENTITLEMENT and the subject is
 * "staging.entitlement.events". Names are joined by "=", which no name contains.
 */
const namePattern = /^[a-z0-9_-]{1,64}$/;
const tokenPattern = /^[A-Za-z0-9_-]{1,64}$/;

export interface Address {
  readonly stream: string;
  /** The subject on the server. */
  readonly subject: string;
}

export interface DurableName {
  readonly stream: string;
  readonly durable: string;
  /** The filter at the server. It is wider than several `subjects`, because servers before 2.10 take one filter. */
  readonly filter: string;
  readonly subjects: ReadonlySet<string>;
}

export interface Names {
  /** Returns undefined for an invalid subject. */
  resolve(subject: string): Address | undefined;
  /** The subject of the event, without the namespace. */
  toEventSubject(serverSubject: string): string;
  /** One durable per stream of the subjects. Throws for a name that the server would not accept. */
  durables(consumer: string, subjects: readonly string[]): DurableName[];
  /** The subjects that a stream takes. */
  streamSubjects(stream: string): string;
  /** Whether the stream belongs to this namespace. */
  isOurs(stream: string): boolean;
}

export function createNames(namespace: string | undefined): Names {
  if (namespace !== undefined && !namePattern.test(namespace)) {
    throw new Error(`the namespace "${namespace}" must be 1 to 64 of a-z, 0-9, "-" and "_"`);
  }
  const subjectPrefix = namespace === undefined ? "" : `${namespace}.`;
  const streamPrefix = namespace === undefined ? "" : `${namespace.toUpperCase()}=`;
  const cache = new Map<string, Address | undefined>();

  const parse = (subject: string): Address | undefined => {
    const [service = "", ...topic] = subject.split(".");
    if (!namePattern.test(service) || topic.length === 0 || !topic.every((token) => tokenPattern.test(token))) return;
    return { stream: streamPrefix + service.toUpperCase(), subject: subjectPrefix + subject };
  };

  /** Called for every event. A service has few subjects; the bound is for one that generates them. */
  const resolve = (subject: string): Address | undefined => {
    if (cache.has(subject)) return cache.get(subject);
    const address = parse(subject);
    if (cache.size < 1_000) cache.set(subject, address);
    return address;
  };

  const streamSubjects = (stream: string) => `${subjectPrefix}${stream.slice(streamPrefix.length).toLowerCase()}.>`;

  return {
    resolve,
    streamSubjects,
    toEventSubject: (serverSubject) => serverSubject.slice(subjectPrefix.length),
    isOurs: (stream) =>
      stream.startsWith(streamPrefix) && namePattern.test(stream.slice(streamPrefix.length).toLowerCase()),
    durables(consumer, subjects) {
      if (!tokenPattern.test(consumer))
        throw new Error(`the consumer "${consumer}" must be 1 to 64 letters, digits, "-" and "_"`);
      const byStream = Map.groupBy(new Set(subjects), (subject) => {
        const address = resolve(subject);
        if (!address) throw new Error(`the subject "${subject}" must be a service in lower case, a dot and a topic`);
        return address.stream;
      });
      return [...byStream].map(([stream, ownSubjects]) => toDurable(stream, ownSubjects.sort()));

      // The subjects are part of the name: a consumer that adds one starts again at the beginning and gets its history too.
      function toDurable(stream: string, ownSubjects: readonly string[]): DurableName {
        const topics = ownSubjects.map((subject) => subject.slice(subject.indexOf(".") + 1).replaceAll(".", "~"));
        const [only = "", ...others] = ownSubjects;
        return {
          stream,
          durable: [consumer, ...topics].join("="),
          filter: others.length === 0 ? subjectPrefix + only : streamSubjects(stream),
          subjects: new Set(ownSubjects),
        };
      }
    },
  };
}
