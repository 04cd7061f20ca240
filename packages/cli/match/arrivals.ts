/**
 * Players who come to wait: made up, from a seed, so that the same command shows the same again.
 *
 * They come at random moments, so many per second on average (a Poisson process). Skills are normally distributed. Half are
 * at home in eu, a third in us, the rest in asia, and one in five would also play in a second region; home is 10 to 60
 * milliseconds away, elsewhere 90 to 250. Where a mode takes parties, two in five tickets are one, of any size. Where it
 * asks for heartbeats, one in fifty goes away without a word within its first half minute.
 */
import type { ModeRules } from "@todoke/matchmaking/rules";

type Attributes = Record<string, number | string | readonly string[] | Readonly<Record<string, number>>>;

/** Somebody who comes to wait. */
export interface Arrival {
  /** Milliseconds since the first one. */
  readonly atMs: number;
  readonly userId: string;
  readonly partySize: number;
  readonly attributes: Attributes;
  /** Leaves after so long, and says so. */
  readonly cancelsAfterMs?: number;
  /** Is heard of for the last time after so long. */
  readonly silentAfterMs?: number;
}

export interface Crowd {
  readonly players: number;
  readonly perSecond: number;
  readonly seed: number;
  readonly skill: { readonly mean: number; readonly deviation: number };
}

const homes = ["eu", "eu", "eu", "us", "us", "asia"] as const;
const regions = ["eu", "us", "asia"] as const;
const secondRegionShare = 0.2;
const partyShare = 0.4;
const silentShare = 0.02;
const silentWithinMs = 30_000;

/** Tickets for so many players: a party counts as many as it has. */
export function arrivalsOf(rules: ModeRules, { players, perSecond, seed, skill }: Crowd): readonly Arrival[] {
  const random = randomFrom(seed);
  const arrivals: Arrival[] = [];
  let atMs = 0;
  for (let left = players; left > 0; ) {
    const partySize = Math.min(left, sizeOf(rules.partyMax, random));
    atMs += (-Math.log(1 - random()) / perSecond) * 1000 * partySize;
    arrivals.push({
      atMs: Math.round(atMs),
      userId: `player-${arrivals.length + 1}`,
      partySize,
      attributes: attributesOf(rules, skill, random),
      ...(rules.heartbeatMs !== undefined && random() < silentShare && { silentAfterMs: random() * silentWithinMs }),
    });
    left -= partySize;
  }
  return arrivals;
}

const sizeOf = (partyMax: number, random: () => number): number =>
  partyMax > 1 && random() < partyShare ? 2 + Math.floor(random() * (partyMax - 1)) : 1;

function attributesOf(rules: ModeRules, { mean, deviation }: Crowd["skill"], random: () => number): Attributes {
  const home = homes[Math.floor(random() * homes.length)] ?? "eu";
  const attributes: Attributes = {};
  if (rules.skill) attributes[rules.skill.attribute] = Math.round(mean + deviation * normal(random));
  if (rules.regions) {
    const second = regions.filter((region) => region !== home)[Math.floor(random() * 2)] ?? home;
    attributes[rules.regions.attribute] = random() < secondRegionShare ? [home, second] : [home];
  }
  if (rules.latency) {
    const ms = (region: string) => Math.round(region === home ? 10 + 50 * random() : 90 + 160 * random());
    attributes[rules.latency.attribute] = Object.fromEntries(regions.map((region) => [region, ms(region)]));
  }
  return attributes;
}

/** Normally distributed around 0 with deviation 1 (Box and Muller). */
const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Numbers from 0 to 1 that follow from a seed (mulberry32). Good enough for a crowd, and for nothing secret. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
