import { transformClientError } from "./transform-error.ts";
import { isRawNumber } from "./exact-json.ts";

/** One selection from an array or an object. */
type Selector =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "slice"; readonly from: number | null; readonly to: number | null }
  | { readonly kind: "all" };

/** A parsed path: steps from the root. Only the last step may select several values. */
export type JsonPath = readonly (readonly Selector[])[];

const pathCharsMax = 63;

/**
 * Parses `$`, `.name`, `['name']`, `[1]`, `[-1]`, `[0,2:5]`, `['a','b']` and `[*]`. Returns null for anything else:
 * scripts, filters, recursion, or several values before the last step.
 */
export function parseJsonPath(text: string): JsonPath | null {
  if (!text.startsWith("$") || text.length > pathCharsMax) return null;
  const step = /\.([A-Za-z_][\w-]*|\*)|\[((?:'[^']*'|"[^"]*"|[^\]'"])*)\]/y;
  const path: Selector[][] = [];
  step.lastIndex = 1;
  while (step.lastIndex < text.length) {
    const match = step.exec(text);
    if (match === null) return null;
    const [, dotted, bracketed = ""] = match;
    const selectors =
      dotted === undefined
        ? parseBrackets(bracketed)
        : [dotted === "*" ? allOfIt : { kind: "name" as const, name: dotted }];
    if (selectors === null) return null;
    path.push(selectors);
  }
  return path.slice(0, -1).every((selectors) => !isSeveral(selectors)) ? path : null;
}

const allOfIt: Selector = { kind: "all" };

function parseBrackets(text: string): Selector[] | null {
  const part = /\s*(?:'([^']*)'|"([^"]*)"|(\*)|(-?\d*)\s*:\s*(-?\d*)|(-?\d+))\s*(,|$)/y;
  const selectors: Selector[] = [];
  for (;;) {
    const match = part.exec(text);
    if (match === null) return null;
    const [, single, double, star, from, to, index, comma] = match;
    const name = single ?? double;
    if (name !== undefined) selectors.push({ kind: "name", name });
    else if (star !== undefined) selectors.push(allOfIt);
    else if (index !== undefined) selectors.push({ kind: "index", index: Number(index) });
    else selectors.push({ kind: "slice", from: boundOf(from), to: boundOf(to) });
    if (comma === "") return selectors;
  }
}

const boundOf = (text: string | undefined) => (text === undefined || text === "" ? null : Number(text));

function isSeveral(selectors: readonly Selector[]): boolean {
  const [only] = selectors;
  return selectors.length > 1 || only === undefined || only.kind === "slice" || only.kind === "all";
}

/**
 * Selects a value. Several values of an object result in an object, several values of an array in an array. Throws
 * TransformError if a value is missing.
 */
export function selectJsonPath(path: JsonPath, root: unknown): unknown {
  let value = root;
  for (const selectors of path) value = isSeveral(selectors) ? several(selectors, value) : one(selectors[0], value);
  return value;
}

function one(selector: Selector | undefined, value: unknown): unknown {
  if (selector?.kind === "index" && Array.isArray(value)) {
    const found = value.at(selector.index) as unknown;
    if (found !== undefined) return found;
    throw transformClientError(`the filter's index ${selector.index} is beyond the ${value.length} entries`);
  }
  if (selector?.kind === "name" && isJsonObject(value) && Object.hasOwn(value, selector.name))
    return value[selector.name];
  throw transformClientError(`the filter finds no ${describe(selector)}`);
}

function several(selectors: readonly Selector[], value: unknown): unknown {
  if (isJsonObject(value)) {
    return Object.fromEntries(
      selectors.flatMap((selector): [string, unknown][] =>
        selector.kind === "all" ? Object.entries(value) : [[nameOf(selector), one(selector, value)]],
      ),
    );
  }
  if (!Array.isArray(value))
    throw transformClientError("the filter selects several values, and the value is neither an array nor an object");
  const entries = value as readonly unknown[];
  return selectors.flatMap((selector) => {
    if (selector.kind === "all") return entries;
    if (selector.kind !== "slice") return [one(selector, entries)];
    return entries.slice(selector.from ?? 0, selector.to ?? undefined);
  });
}

const nameOf = (selector: Selector) => (selector.kind === "name" ? selector.name : "");

function describe(selector: Selector | undefined): string {
  if (selector?.kind === "name") return `attribute '${selector.name}'`;
  return selector?.kind === "index" ? `entry ${selector.index}` : "such entry";
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}
