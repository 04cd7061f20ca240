/** What a ticket lacks under the rules of its mode, by the names of the request, for a 422 that says all of it. */
import type { FieldFault } from "@todoke/kernel/problem";
import type { AttributeValue, OpenTicket } from "../tickets.ts";
import type { ModeRules } from "./types.ts";

/** A skill is a number that a person could have: past it gaps lose their meaning. */
const skillMax = 1_000_000_000;
/** Regions that a ticket can name. */
const regionsMax = 16;

export function faultsOfTicket(
  rules: ModeRules,
  { partySize, attributes }: Pick<OpenTicket, "partySize" | "attributes">,
): readonly FieldFault[] {
  const faults: FieldFault[] = [];
  if (partySize > rules.partyMax)
    faults.push({ field: "body.party_size", detail: `should be ${rules.partyMax} at the most in ${rules.mode}` });
  const ask = (attribute: string | undefined, isFit: (value: AttributeValue) => boolean, detail: string) => {
    if (attribute === undefined) return;
    const value = attributes[attribute];
    if (value === undefined || !isFit(value)) faults.push({ field: `body.attributes.${attribute}`, detail });
  };
  ask(rules.skill?.attribute, isSkill, `should be a number from -${skillMax} to ${skillMax}`);
  ask(rules.regions?.attribute, isRegions, `should be a region, or a list of 1 to ${regionsMax} of them`);
  ask(rules.latency?.attribute, isLatency, `should be 1 to ${regionsMax} regions, each with its milliseconds`);
  return faults;
}

/**
 * What a player's own join may not set in this mode. An attribute that the mode requires and a back-end sets is a fault even if
 * it is missing: the player cannot join without a back-end.
 */
export function faultsOfPlayer(
  { mode, setByBackend = [], skill, regions, latency }: ModeRules,
  { partySize, attributes }: Pick<OpenTicket, "partySize" | "attributes">,
): readonly FieldFault[] {
  const required = [skill, regions, latency].map((rule) => rule?.attribute);
  const fields = setByBackend.flatMap((name) => [
    ...(name === "party_size" && partySize > 1 ? ["body.party_size"] : []),
    ...(Object.hasOwn(attributes, name) || required.includes(name) ? [`body.attributes.${name}`] : []),
  ]);
  return fields.map((field) => ({ field, detail: `is set by a back-end in ${mode}` }));
}

const isSkill = (value: AttributeValue): boolean => typeof value === "number" && Math.abs(value) <= skillMax;

const isRegions = (value: AttributeValue): boolean =>
  isRegion(value) || (Array.isArray(value) && isSome(value.length) && value.every(isRegion));

const isRegion = (value: unknown): boolean => typeof value === "string" && value !== "";

function isLatency(value: AttributeValue): boolean {
  if (typeof value !== "object" || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  return isSome(entries.length) && entries.every(([region, ms]) => isRegion(region) && ms >= 0);
}

const isSome = (count: number): boolean => count >= 1 && count <= regionsMax;
