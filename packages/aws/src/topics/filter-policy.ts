import type { MessageAttribute } from "./message-text.ts";
import { ruleAccepts, FilterFault, ruleOf, type FilterRule, type FilterValue } from "./filter-rule.ts";
import { invalidParameter, type FilterScope, type FilterText } from "./topic.ts";

/** What a message must be like: all of these, of which one may be a choice. */
type Clause =
  | { readonly is: "field"; readonly path: string; readonly rules: readonly FilterRule[] }
  | { readonly is: "either"; readonly of: readonly (readonly Clause[])[] };

export interface FilterPolicy {
  readonly scope: FilterScope;
  readonly clauses: readonly Clause[];
  /** Paths of the fields that are looked at, and of what they lie in. */
  readonly paths: ReadonlySet<string>;
}

/** SNS's own limits: of a policy's text, its names, how its values multiply, and how deep it goes. */
const policyBytesMax = 262_144;
const keysMax = 5;
const combinationsMax = 150;
/** A policy's depth multiplies its combinations, and each choice adds to them, so none that SNS takes goes deeper. */
const levelsMax = combinationsMax;

/** Throws AwsError in SNS's words, with `where` before them. */
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
    if (!(error instanceof FilterFault)) throw error;
    if (error.message === nestedText) throw invalidParameter(`${where}${nestedText}`);
    throw refuse(error.message);
  }
}

const nestedText = "Filter policy scope MessageAttributes does not support nested filter policy";

interface Reading {
  readonly scope: FilterScope;
  readonly paths: Set<string>;
}

interface Place {
  readonly path: string;
  /** Of the names that it lies in. */
  readonly depth: number;
  /** Of the objects that it lies in: those of choices, too. */
  readonly level: number;
  readonly combinations: number;
}

/** The clauses of an object, and how many combinations there are with those before it: each list's length times its depth. */
function readClauses(json: Readonly<Record<string, unknown>>, place: Place, reading: Reading) {
  const { path, depth, combinations } = place;
  const level = place.level + 1;
  if (depth > 1 && reading.scope === "MessageAttributes") throw new FilterFault(nestedText);
  if (level > levelsMax) throw new FilterFault("Filter policy is too complex");
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
          throw new FilterFault(`"${key.slice(0, 64)}" must be an object or an array`);
        }
        if (value.length === 0) throw new FilterFault("Empty arrays are not allowed");
        product *= value.length * depth;
        if (product <= combinationsMax) clauses.push({ is: "field", path: own, rules: value.map(ruleOf) });
      }
    }
    if (product > combinationsMax) throw new FilterFault("Filter policy is too complex");
  }
  return { clauses, combinations: product };
}

/** What of a message's body policies look at: read once for all subscriptions, and only where one wants it. */
export class FilteredMessage {
  readonly attributes: Readonly<Record<string, MessageAttribute>>;
  readonly #text: string;
  #body: { readonly json: unknown } | null = null;

  constructor(message: { readonly text: string; readonly attributes: Readonly<Record<string, MessageAttribute>> }) {
    this.#text = message.text;
    this.attributes = message.attributes;
  }

  /** Undefined where the body is no JSON. */
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

/** What CloudWatch counts a message as that a subscription's filter keeps back. */
export type FilterVerdict = "passes" | "attributes-differ" | "no-attributes" | "body-differs" | "no-body";

/**
 * Returns whether a message is for a subscription with this policy. Whoever subscribes chooses the rules, and whoever
 * publishes the values: together they may take seconds, so it is looked at in pieces of some milliseconds, between
 * which others may have their turns.
 */
export function* filterVerdict(policy: FilterPolicy, message: FilteredMessage): Generator<void, FilterVerdict, void> {
  if (policy.clauses.length === 0) return "passes";
  const effort = new Effort();
  if (policy.scope === "MessageAttributes") {
    if (yield* holds(policy.clauses, attributesRead(message.attributes), effort)) return "passes";
    return Object.keys(message.attributes).length === 0 ? "no-attributes" : "attributes-differ";
  }
  const body = message.body();
  if (!isObject(body)) return "no-body";
  const found = yield* bodyValues(body, policy.paths, effort);
  return (yield* holds(policy.clauses, (path) => found.get(path) ?? null, effort)) ? "passes" : "body-differs";
}

/** A value that is compared costs as much as a hundred characters of a text that is searched. */
const comparisonChars = 100;
const pieceChars = 500_000;

/** How much has been looked at since the last piece. */
class Effort {
  #chars = 0;

  /** Returns whether a piece is over with this value. */
  isOver(value: unknown): boolean {
    this.#chars += comparisonChars + (typeof value === "string" ? value.length : 0);
    if (this.#chars < pieceChars) return false;
    this.#chars = 0;
    return true;
  }
}

/** Null for a field that is not there. */
type Values = (path: string) => readonly FilterValue[] | null;

function* holds(clauses: readonly Clause[], values: Values, effort: Effort): Generator<void, boolean, void> {
  for (const clause of clauses) {
    if (!(yield* clauseHolds(clause, values, effort))) return false;
  }
  return true;
}

function* clauseHolds(clause: Clause, values: Values, effort: Effort): Generator<void, boolean, void> {
  if (clause.is === "either") {
    for (const choice of clause.of) {
      if (yield* holds(choice, values, effort)) return true;
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

/** Each attribute is read once, however many clauses look at it. */
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

/** SNS's filters do not see binary attributes. An array is as good as any of its elements. */
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
 * The values at each of the paths, of every element of an array that lies on the way. Only what lies on a path is looked at, and deep
 * documents cost no stack: whoever may publish chooses both.
 */
function* bodyValues(body: Readonly<Record<string, unknown>>, paths: ReadonlySet<string>, effort: Effort) {
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
