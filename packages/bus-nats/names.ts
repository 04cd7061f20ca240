/**
 * What things are called on the server. A stream belongs to the service that produces into it, and its name follows
 * from the first token of the subject: "entitlement.events" lives in the stream ENTITLEMENT, which takes "entitlement.>".
 *
 * A place puts a whole bus apart from others on one server: in the place "staging" that is the stream
 * STAGING=ENTITLEMENT and the subject "staging.entitlement.events". "=" joins names because it is in none of them.
 */
const namePattern = /^[a-z0-9_-]{1,64}$/;
const tokenPattern = /^[A-Za-z0-9_-]{1,64}$/;

export interface Address {
  readonly stream: string;
  /** The subject as the server knows it. */
  readonly subject: string;
}

export interface DurableName {
  readonly stream: string;
  readonly durable: string;
  /** What the server filters by. Wider than `subjects` when there are several: servers before 2.10 take one filter. */
  readonly filter: string;
  readonly subjects: ReadonlySet<string>;
}

export interface Names {
  /** Undefined for a subject that has no place on the server. */
  addressOf(subject: string): Address | undefined;
  /** The subject as the port knows it. */
  subjectOf(serverSubject: string): string;
  /** One durable for each stream that the subjects live in. Throws on a name that the server would not take. */
  durablesOf(consumer: string, subjects: readonly string[]): DurableName[];
  /** The streams' common beginning, and what a stream of ours takes. */
  subjectsOf(stream: string): string;
  isOurs(stream: string): boolean;
}

export function namesIn(place: string | undefined): Names {
  if (place !== undefined && !namePattern.test(place)) {
    throw new Error(`the place "${place}" must be 1 to 64 of a-z, 0-9, "-" and "_"`);
  }
  const subjectPrefix = place === undefined ? "" : `${place}.`;
  const streamPrefix = place === undefined ? "" : `${place.toUpperCase()}=`;
  const known = new Map<string, Address | undefined>();

  const resolve = (subject: string): Address | undefined => {
    const [service = "", ...topic] = subject.split(".");
    if (!namePattern.test(service) || topic.length === 0 || !topic.every((token) => tokenPattern.test(token))) return;
    return { stream: streamPrefix + service.toUpperCase(), subject: subjectPrefix + subject };
  };

  /** Asked for every event: a service has a handful of subjects. The bound is for one that makes them up. */
  const addressOf = (subject: string): Address | undefined => {
    if (known.has(subject)) return known.get(subject);
    const address = resolve(subject);
    if (known.size < 1_000) known.set(subject, address);
    return address;
  };

  const subjectsOf = (stream: string) => `${subjectPrefix}${stream.slice(streamPrefix.length).toLowerCase()}.>`;

  return {
    addressOf,
    subjectsOf,
    subjectOf: (serverSubject) => serverSubject.slice(subjectPrefix.length),
    isOurs: (stream) =>
      stream.startsWith(streamPrefix) && namePattern.test(stream.slice(streamPrefix.length).toLowerCase()),
    durablesOf(consumer, subjects) {
      if (!tokenPattern.test(consumer))
        throw new Error(`the consumer "${consumer}" must be 1 to 64 letters, digits, "-" and "_"`);
      const byStream = Map.groupBy(new Set(subjects), (subject) => {
        const address = addressOf(subject);
        if (!address) throw new Error(`the subject "${subject}" must be a service in lower case, a dot and a topic`);
        return address.stream;
      });
      return [...byStream].map(([stream, itsSubjects]) => durableOf(stream, itsSubjects.sort()));

      // The subjects are part of the name: who asks for one more starts again at the beginning, and gets its past too.
      function durableOf(stream: string, itsSubjects: readonly string[]): DurableName {
        const topics = itsSubjects.map((subject) => subject.slice(subject.indexOf(".") + 1).replaceAll(".", "~"));
        const [only = "", ...others] = itsSubjects;
        return {
          stream,
          durable: [consumer, ...topics].join("="),
          filter: others.length === 0 ? subjectPrefix + only : subjectsOf(stream),
          subjects: new Set(itsSubjects),
        };
      }
    },
  };
}
