import { BlockList, isIP } from "node:net";
import { unreachable } from "@galatea/base";

/** A value of a message's body or attribute. */
export type FilterValue = string | number | boolean | null;

type Comparison = "=" | "<" | "<=" | ">" | ">=";

/** A condition on a value. */
export type FilterRule =
  | { readonly is: "equal"; readonly value: FilterValue }
  | { readonly is: "prefix" | "suffix" | "equals-ignore-case"; readonly text: string }
  /** The texts between the `*`, including the empty texts at the ends. */
  | { readonly is: "wildcard"; readonly parts: readonly string[] }
  | { readonly is: "numeric"; readonly bounds: readonly { readonly comparison: Comparison; readonly bound: number }[] }
  | { readonly is: "cidr"; readonly network: BlockList }
  | { readonly is: "exists"; readonly isThere: boolean }
  | { readonly is: "anything-but"; readonly but: FilterRule }
  /** A list may have tens of thousands of values, so a set is used. */
  | { readonly is: "none-of"; readonly values: ReadonlySet<FilterValue> };

/** Returns whether a value satisfies a rule. Missing fields are handled by the caller. */
export function ruleAccepts(rule: FilterRule, value: FilterValue): boolean {
  switch (rule.is) {
    case "equal":
      return rule.value === value;
    case "prefix":
      return typeof value === "string" && value.startsWith(rule.text);
    case "suffix":
      return typeof value === "string" && value.endsWith(rule.text);
    case "equals-ignore-case":
      return typeof value === "string" && value.toLowerCase() === rule.text;
    case "wildcard":
      return typeof value === "string" && matchesParts(rule.parts, value);
    case "numeric":
      return typeof value === "number" && rule.bounds.every((bound) => isWithin(value, bound));
    case "cidr": {
      const family = typeof value === "string" ? isIP(value) : 0;
      return family !== 0 && rule.network.check(value as string, family === 6 ? "ipv6" : "ipv4");
    }
    case "exists":
      return rule.isThere;
    case "anything-but":
      return value !== null && !ruleAccepts(rule.but, value);
    case "none-of":
      return value !== null && !rule.values.has(value);
    default:
      return unreachable(rule);
  }
}

function isWithin(value: number, { comparison, bound }: { readonly comparison: Comparison; readonly bound: number }) {
  switch (comparison) {
    case "=":
      return value === bound;
    case "<":
      return value < bound;
    case "<=":
      return value <= bound;
    case ">":
      return value > bound;
    case ">=":
      return value >= bound;
    default:
      return unreachable(comparison);
  }
}

/**
 * Returns whether a text contains the parts in order. Each part is searched after the previous one. The first
 * occurrence suffices, so there is no backtracking.
 */
function matchesParts(segments: readonly string[], text: string): boolean {
  const first = segments[0] ?? "";
  const last = segments.at(-1) ?? "";
  if (segments.length === 1) return text === first;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let from = first.length;
  const to = text.length - last.length;
  for (const segment of segments.slice(1, -1)) {
    const at = text.indexOf(segment, from);
    if (at === -1 || at + segment.length > to) return false;
    from = at + segment.length;
  }
  return true;
}

/** Parses one rule of a policy. Throws FilterPolicyError with SNS's text, without the prefix `Invalid parameter: `. */
export function parseFilterRule(json: unknown): FilterRule {
  if (json === null || typeof json === "string" || typeof json === "boolean") return { is: "equal", value: json };
  if (typeof json === "number") return { is: "equal", value: inRange(json) };
  if (typeof json !== "object" || Array.isArray(json)) {
    throw new FilterPolicyError("Match value must be String, number, true, false, or null");
  }
  const [entry, more] = Object.entries(json as Readonly<Record<string, unknown>>);
  if (entry === undefined || more !== undefined)
    throw new FilterPolicyError("Only one key allowed in match expression");
  const [operator, value] = entry;
  switch (operator) {
    case "prefix":
    case "suffix":
      return { is: operator, text: textOf(operator, value) };
    case "equals-ignore-case":
      return { is: operator, text: textOf(operator, value).toLowerCase() };
    case "wildcard":
      return { is: operator, parts: textOf(operator, value).split(/\*+/) };
    case "numeric":
      return { is: operator, bounds: boundsOf(value) };
    case "cidr":
      return { is: operator, network: networkOf(value) };
    case "exists":
      if (typeof value !== "boolean") throw new FilterPolicyError("exists match pattern must be either true or false.");
      return { is: operator, isThere: value };
    case "anything-but":
      return exceptionOf(value);
    default:
      throw new FilterPolicyError(`Unrecognized match type ${operator.slice(0, 64)}`);
  }
}

/** An error in a filter policy. */
export class FilterPolicyError extends Error {
  override readonly name = "FilterPolicyError";
}

function textOf(operator: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw new FilterPolicyError(`${operator} match pattern must be a string`);
}

/** Returns a number within SNS's range, from minus to plus one billion. Throws FilterPolicyError for others. */
function inRange(value: number): number {
  if (value >= -1e9 && value <= 1e9) return value;
  throw new FilterPolicyError("Numbers must be between -1000000000 and 1000000000");
}

/** Parses the value of `anything-but`. */
function exceptionOf(value: unknown): FilterRule {
  if (!Array.isArray(value)) {
    // A nested `anything-but` is rejected, because the recursion would be as deep as the input.
    if (isException(value)) throw new FilterPolicyError("Unsupported anything-but pattern: anything-but");
    const but = parseFilterRule(value);
    const isSimple = ["equal", "prefix", "suffix", "wildcard", "equals-ignore-case"].includes(but.is);
    if (isSimple) return { is: "anything-but", but };
    throw new FilterPolicyError(`Unsupported anything-but pattern: ${but.is}`);
  }
  if (value.length === 0) throw new FilterPolicyError("Empty arrays are not allowed");
  const values = value.map((each: unknown) => {
    if (typeof each === "string") return each;
    if (typeof each === "number") return inRange(each);
    throw new FilterPolicyError("Inside anything-but list, start|null|boolean is not supported.");
  });
  return { is: "none-of", values: new Set(values) };
}

const isException = (value: unknown) =>
  typeof value === "object" && value !== null && Object.hasOwn(value, "anything-but");

const comparisons: readonly string[] = ["=", "<", "<=", ">", ">="] satisfies readonly Comparison[];

/** Parses one comparison, or a range such as `[">", 0, "<=", 150]`. */
function boundsOf(value: unknown) {
  if (!Array.isArray(value) || value.length === 0) throw new FilterPolicyError("Invalid member in numeric match: ]");
  const [first, low, second, high, ...more] = value as readonly unknown[];
  if (typeof first !== "string") throw new FilterPolicyError(`Invalid member in numeric match: ${shown(first)}`);
  if (!comparisons.includes(first)) throw new FilterPolicyError(`Unrecognized numeric range operator: ${shown(first)}`);
  const bounds = [{ comparison: first as Comparison, bound: boundOf(first, low) }];
  if (value.length <= 2) return bounds;
  if (!first.startsWith(">")) throw new FilterPolicyError("Too many elements in numeric expression");
  if (typeof second !== "string") throw new FilterPolicyError(`Bad value in numeric range: ${shown(second)}`);
  if (second !== "<" && second !== "<=") throw new FilterPolicyError(`Bad numeric range operator: ${shown(second)}`);
  const top = boundOf(second, high);
  if (top <= boundOf(first, low)) throw new FilterPolicyError("Bottom must be less than top");
  if (more.length > 0) throw new FilterPolicyError("Too many terms in numeric range expression");
  return [...bounds, { comparison: second as Comparison, bound: top }];
}

function boundOf(comparison: string, value: unknown): number {
  if (typeof value === "number") return inRange(value);
  throw new FilterPolicyError(`Value of ${comparison === "=" ? "equals" : comparison} must be numeric`);
}

function networkOf(value: unknown): BlockList {
  if (typeof value !== "string") throw new FilterPolicyError("prefix match pattern must be a string");
  const [address = "", bits, ...more] = value.split("/");
  if (bits === undefined || more.length > 0) throw new FilterPolicyError("Malformed CIDR, one '/' required");
  if (!/^\d{1,3}$/.test(bits)) throw new FilterPolicyError("Malformed CIDR, mask bits must be an integer");
  const family = isIP(address);
  if (family === 0) throw new FilterPolicyError(`Nonstandard IP address: ${address.slice(0, 64)}`);
  if (Number(bits) > (family === 6 ? 128 : 32))
    throw new FilterPolicyError("Malformed CIDR, mask bits must be an integer");
  const network = new BlockList();
  network.addSubnet(address, Number(bits), family === 6 ? "ipv6" : "ipv4");
  return network;
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 64);
