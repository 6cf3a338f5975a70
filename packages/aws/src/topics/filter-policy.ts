import type { MessageAttribute } from "./message-format.ts";
import { ruleAccepts, FilterPolicyError, parseFilterRule, type FilterRule, type FilterValue } from "./filter-rule.ts";
import { invalidParameter, type FilterScope, type FilterText } from "./topic.ts";

/** A condition on a message, or alternatives (`$or`). A message passes if all clauses of the policy are true. */
type Clause =
  | { readonly is: "field"; readonly path: string; readonly rules: readonly FilterRule[] }
  | { readonly is: "either"; readonly of: readonly (readonly Clause[])[] };

export interface FilterPolicy {
  readonly scope: FilterScope;
  readonly clauses: readonly Clause[];
  /** Paths of the fields that the policy reads, and of the objects that contain these fields. */
  readonly paths: ReadonlySet<string>;
}

/** SNS's limits on a policy's text, its names and its combinations of values. */
const policyBytesMax = 262_144;
const keysMax = 5;
const combinationsMax = 150;
/**
 * Maximum depth. Depth and alternatives multiply the combinations, so SNS accepts no policy that is deeper than this.
 */
const levelsMax = combinationsMax;

/** Parses a filter policy. Throws AwsError with SNS's text, and `where` before it. */
export function parseFilterPolicy({ policy, scope }: FilterText, where = ""): FilterPolicy {
  const refuse = (text: string) => invalidParameter(`${where}FilterPolicy: ${text}`);
  if (Buffer.byteLength(policy) > policyBytesMax) throw refuse(`Filter policy is longer than ${policyBytesMax} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(policy);
  } catch {
    throw refuse("failed to parse JSON.");
  }
  if (!isObject(json)) throw refuse("Filter policy must be an object");
  if (Object.keys(json).length > keysMax) throw refuse(`Filter policy can not have more than ${keysMax} keys`);
  const reading: Reading = { scope, paths: new Set() };
  try {
    const { clauses } = readClauses(json, { path: "", depth: 1, level: 1, combinations: 1 }, reading);
    return { scope, clauses, paths: reading.paths };
  } catch (error) {
    if (!(error instanceof FilterPolicyError)) throw error;
    if (error.message === nestedText) throw invalidParameter(`${where}${nestedText}`);
    throw refuse(error.message);
  }
}

const nestedText = "Filter policy scope MessageAttributes does not support nested filter policy";

interface Reading {
  readonly scope: FilterScope;
  readonly paths: Set<string>;
}

interface Location {
  readonly path: string;
  /** Number of enclosing names. */
  readonly depth: number;
  /** Number of enclosing objects, including those of choices. */
  readonly level: number;
  readonly combinations: number;
}

/**
 * Reads the clauses of an object. Also returns the number of combinations so far, to which each list contributes its
 * length times its depth.
 */
function readClauses(json: Readonly<Record<string, unknown>>, location: Location, reading: Reading) {
  const { path, depth, combinations } = location;
  const level = location.level + 1;
  if (depth > 1 && reading.scope === "MessageAttributes") throw new FilterPolicyError(nestedText);
  if (level > levelsMax) throw new FilterPolicyError("Filter policy is too complex");
  const clauses: Clause[] = [];
  let product = combinations;
  for (const [key, value] of Object.entries(json)) {
    if (key === "$or" && Array.isArray(value) && value.length > 1 && value.every(isObject)) {
      const choices = value.map((each) => readClauses(each, { path, depth, level, combinations: product }, reading));
      clauses.push({ is: "either", of: choices.map((choice) => choice.clauses) });
      product = choices.reduce((sum, choice) => sum + choice.combinations, 0);
    } else {
      const own = path === "" ? key : `${path}.${key}`;
      reading.paths.add(own);
      if (isObject(value)) {
        const inner = readClauses(value, { path: own, depth: depth + 1, level, combinations: product }, reading);
        clauses.push(...inner.clauses);
        product = inner.combinations;
      } else {
        if (!Array.isArray(value)) {
          throw new FilterPolicyError(`"${key.slice(0, 64)}" must be an object or an array`);
        }
        if (value.length === 0) throw new FilterPolicyError("Empty arrays are not allowed");
        product *= value.length * depth;
        if (product <= combinationsMax) clauses.push({ is: "field", path: own, rules: value.map(parseFilterRule) });
      }
    }
    if (product > combinationsMax) throw new FilterPolicyError("Filter policy is too complex");
  }
  return { clauses, combinations: product };
}

/** The fields of a message that policies read. The body is parsed on demand, at most once for all subscriptions. */
export class FilteredMessage {
  readonly attributes: Readonly<Record<string, MessageAttribute>>;
  readonly #text: string;
  #body: { readonly json: unknown } | null = null;

  constructor(message: { readonly text: string; readonly attributes: Readonly<Record<string, MessageAttribute>> }) {
    this.#text = message.text;
    this.attributes = message.attributes;
  }

  /** Returns the parsed body; undefined if it is not JSON. */
  body(): unknown {
    return (this.#body ??= { json: parsed(this.#text) }).json;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The result of a filter. CloudWatch counts excluded messages separately for each reason. */
export type FilterVerdict = "passes" | "attributes-differ" | "no-attributes" | "body-differs" | "no-body";

/**
 * Returns whether a message passes a subscription's policy. Subscribers choose the rules and publishers choose the
 * values, so an evaluation may take seconds. The generator therefore yields every few milliseconds.
 */
export function* evaluateFilter(policy: FilterPolicy, message: FilteredMessage): Generator<void, FilterVerdict, void> {
  if (policy.clauses.length === 0) return "passes";
  const effort = new FilterCost();
  if (policy.scope === "MessageAttributes") {
    if (yield* matchesClauses(policy.clauses, attributesRead(message.attributes), effort)) return "passes";
    return Object.keys(message.attributes).length === 0 ? "no-attributes" : "attributes-differ";
  }
  const body = message.body();
  if (!isObject(body)) return "no-body";
  const found = yield* bodyValues(body, policy.paths, effort);
  return (yield* matchesClauses(policy.clauses, (path) => found.get(path) ?? null, effort)) ? "passes" : "body-differs";
}

/** Cost of comparing a value, as an equivalent number of searched characters. */
const comparisonChars = 100;
const chunkChars = 500_000;

/** The cost of the comparisons since the last yield to the event loop. */
class FilterCost {
  #chars = 0;

  /** Adds the cost of a value. Returns whether to yield after it. */
  isOver(value: unknown): boolean {
    this.#chars += comparisonChars + (typeof value === "string" ? value.length : 0);
    if (this.#chars < chunkChars) return false;
    this.#chars = 0;
    return true;
  }
}

/** Returns the values of a field; null for a missing field. */
type Values = (path: string) => readonly FilterValue[] | null;

function* matchesClauses(
  clauses: readonly Clause[],
  values: Values,
  effort: FilterCost,
): Generator<void, boolean, void> {
  for (const clause of clauses) {
    if (!(yield* matchesClause(clause, values, effort))) return false;
  }
  return true;
}

function* matchesClause(clause: Clause, values: Values, effort: FilterCost): Generator<void, boolean, void> {
  if (clause.is === "either") {
    for (const choice of clause.of) {
      if (yield* matchesClauses(choice, values, effort)) return true;
    }
    return false;
  }
  const found = values(clause.path);
  if (found === null) return clause.rules.some((rule) => rule.is === "exists" && !rule.isThere);
  for (const rule of clause.rules) {
    for (const value of found) {
      if (ruleAccepts(rule, value)) return true;
      if (effort.isOver(value)) yield;
    }
  }
  return false;
}

/** Returns a reader of attributes. It parses each attribute once, even if several clauses use it. */
function attributesRead(attributes: Readonly<Record<string, MessageAttribute>>): Values {
  const known = new Map<string, readonly FilterValue[] | null>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const values = attributeValues(attributes, name);
    known.set(name, values);
    return values;
  };
}

/**
 * Returns an attribute's values. An array has the values of its elements. SNS's filters do not see binary attributes.
 */
function attributeValues(
  attributes: Readonly<Record<string, MessageAttribute>>,
  name: string,
): readonly FilterValue[] | null {
  const attribute = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  if (attribute === undefined) return null;
  const { Type: type, Value: value } = attribute;
  if (type.startsWith("Binary")) return null;
  if (type.startsWith("Number")) return [Number(value)];
  if (!type.startsWith("String.Array")) return [value];
  const elements = parsed(value);
  return Array.isArray(elements) ? elements.filter(isValue) : [];
}

/**
 * Collects the values at each of the paths, including the values in all elements of an array on the path. Visits only
 * these paths. Does not recurse, because publishers choose the depth of the document.
 */
function* bodyValues(body: Readonly<Record<string, unknown>>, paths: ReadonlySet<string>, effort: FilterCost) {
  const found = new Map<string, FilterValue[]>();
  const left: { readonly path: string; readonly json: unknown }[] = [{ path: "", json: body }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { path, json } = next;
    if (effort.isOver(null)) yield;
    if (isValue(json)) {
      const values = found.get(path);
      if (values === undefined) found.set(path, [json]);
      else values.push(json);
    } else if (Array.isArray(json)) {
      for (const each of json as readonly unknown[]) left.push({ path, json: each });
    } else if (isObject(json)) {
      for (const key of Object.keys(json)) {
        const own = path === "" ? key : `${path}.${key}`;
        if (paths.has(own)) left.push({ path: own, json: json[key] });
      }
    }
  }
  return found;
}

const isObject = (json: unknown): json is Readonly<Record<string, unknown>> =>
  typeof json === "object" && json !== null && !Array.isArray(json);

const isValue = (json: unknown): json is FilterValue => json === null || typeof json !== "object";
