/**
 * Generates players for a simulation. They depend only on the seed, so the same command gives the same players.
 *
 * Arrivals are a Poisson process, skills are normally distributed. Half of the players live in eu, a third in us, the rest in
 * asia. One in five also accepts a second region. Their own region has a latency of 10 to 60 ms, others of 90 to 250 ms. If
 * the mode allows parties, two in five tickets are a party of a random size. If the mode requires heartbeats, one in fifty
 * tickets stops sending them within its first half minute.
 */
import type { ModeRules } from "../rules/index.ts";

type Attributes = Record<string, number | string | readonly string[] | Readonly<Record<string, number>>>;

/** A ticket of a simulation. */
export interface Arrival {
  /** Time since the first arrival. */
  readonly atMs: number;
  readonly userId: string;
  readonly partySize: number;
  readonly attributes: Attributes;
  /** Cancels after this time. */
  readonly cancelsAfterMs?: number;
  /** Sends its last heartbeat after this time. */
  readonly silentAfterMs?: number;
}

export interface PlayerOptions {
  readonly players: number;
  readonly perSecond: number;
  readonly seed: number;
  readonly skill: { readonly mean: number; readonly deviation: number };
}

const homeRegions = ["eu", "eu", "eu", "us", "us", "asia"] as const;
const regions = ["eu", "us", "asia"] as const;
const secondRegionShare = 0.2;
const partyShare = 0.4;
const silentShare = 0.02;
const silentWithinMs = 30_000;

/** Generates tickets for `players` players. A party counts with its size. */
export function generateArrivals(
  rules: ModeRules,
  { players, perSecond, seed, skill }: PlayerOptions,
): readonly Arrival[] {
  const random = seededRandom(seed);
  const arrivals: Arrival[] = [];
  let atMs = 0;
  for (let left = players; left > 0; ) {
    const partySize = Math.min(left, randomPartySize(rules.partyMax, random));
    atMs += (-Math.log(1 - random()) / perSecond) * 1000 * partySize;
    arrivals.push({
      atMs: Math.round(atMs),
      userId: `player-${arrivals.length + 1}`,
      partySize,
      attributes: randomAttributes(rules, skill, random),
      ...(rules.heartbeatMs !== undefined && random() < silentShare && { silentAfterMs: random() * silentWithinMs }),
    });
    left -= partySize;
  }
  return arrivals;
}

const randomPartySize = (partyMax: number, random: () => number): number =>
  partyMax > 1 && random() < partyShare ? 2 + Math.floor(random() * (partyMax - 1)) : 1;

function randomAttributes(
  rules: ModeRules,
  { mean, deviation }: PlayerOptions["skill"],
  random: () => number,
): Attributes {
  const home = homeRegions[Math.floor(random() * homeRegions.length)] ?? "eu";
  const attributes: Attributes = {};
  if (rules.skill) attributes[rules.skill.attribute] = Math.round(mean + deviation * randomNormal(random));
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

/** Standard normal distribution (Box-Muller). */
const randomNormal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Random numbers from 0 to 1 from a seed (mulberry32). Not for secrets. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
