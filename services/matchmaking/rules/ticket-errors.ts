/** Checks a ticket against the rules of its mode. Errors name the fields of the request, for the problem response. */
import type { FieldFault } from "@todoke/kernel/problem";
import type { AttributeValue, OpenTicket } from "../queue/ticket.ts";
import type { ModeRules } from "./types.ts";

/** Far above any rating system. */
const skillMax = 1_000_000_000;
/** The most regions of one ticket. */
const regionsMax = 16;

export function faultsOfTicket(
  rules: ModeRules,
  { partySize, attributes }: Pick<OpenTicket, "partySize" | "attributes">,
): readonly FieldFault[] {
  const errors: FieldFault[] = [];
  if (partySize > rules.partyMax)
    errors.push({ field: "body.party_size", detail: `should be at most ${rules.partyMax} in ${rules.mode}` });
  const check = (attribute: string | undefined, isFit: (value: AttributeValue) => boolean, detail: string) => {
    if (attribute === undefined) return;
    const value = attributes[attribute];
    if (value === undefined || !isFit(value)) errors.push({ field: `body.attributes.${attribute}`, detail });
  };
  check(rules.skill?.attribute, isSkill, `should be a number from -${skillMax} to ${skillMax}`);
  check(rules.regions?.attribute, isRegions, `should be a region or a list of 1 to ${regionsMax} regions`);
  check(rules.latency?.attribute, isLatency, `should have 1 to ${regionsMax} regions, each with its milliseconds`);
  return errors;
}

/**
 * The fields that a player may not set in this mode. A required attribute that only a back-end sets is an error even if it is
 * missing: the player cannot join without a back-end.
 */
export function playerErrors(
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
  isRegion(value) || (Array.isArray(value) && isCount(value.length) && value.every(isRegion));

const isRegion = (value: unknown): boolean => typeof value === "string" && value !== "";

function isLatency(value: AttributeValue): boolean {
  if (typeof value !== "object" || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  return isCount(entries.length) && entries.every(([region, ms]) => isRegion(region) && ms >= 0);
}

const isCount = (count: number): boolean => count >= 1 && count <= regionsMax;
