import { InferenceError } from "@galatea/base";

/** A step of an MXNet symbol: an operator over the results of earlier steps. */
export interface SymbolNode {
  readonly operator: string;
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  /** Indices of the steps whose results this step uses, all before this one. */
  readonly inputs: readonly number[];
}

export interface SymbolGraph {
  readonly nodes: readonly SymbolNode[];
  /** Index of the step whose result is the model's output. */
  readonly head: number;
}

const nodesMax = 1000;

/** Reads the JSON form of a symbol. Throws InferenceError for an invalid symbol, or if a step uses the result of a later step. */
export function readSymbolGraph(text: string): SymbolGraph {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new InferenceError("INVALID_ARG", "the model's symbol is not valid JSON", { cause: error });
  }
  const listed = listAt(document, "nodes");
  if (listed.length > nodesMax)
    throw new InferenceError("UNSUPPORTED", `the model's symbol has more than ${nodesMax} nodes`);
  const nodes = listed.map(nodeOf);
  const heads = listAt(document, "heads");
  const head = heads.length === 0 ? undefined : firstOf(heads[0]);
  if (head === undefined || nodes[head] === undefined) throw brokenSymbol("has no output");
  return { nodes, head };
}

function nodeOf(value: unknown, index: number): SymbolNode {
  const operator = memberOf(value, "op");
  const name = memberOf(value, "name");
  if (typeof operator !== "string" || typeof name !== "string") throw brokenSymbol(`has no operator at node ${index}`);
  const inputs = listAt(value, "inputs").map((input) => {
    const from = firstOf(input);
    if (from === undefined || from >= index)
      throw brokenSymbol(`has a node '${name}' that does not come after its inputs`);
    if (Array.isArray(input) && input[1] !== 0) throw brokenSymbol(`has a node '${name}' that reads a second output`);
    return from;
  });
  return { operator, name, attributes: attributesOf(value), inputs };
}

/** Returns the attributes of a step. Depending on the version, MXNet names the member `param`, `attr` or `attrs`. */
function attributesOf(value: unknown): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const member of ["param", "attr", "attrs"]) {
    const found = memberOf(value, member);
    if (found === null || typeof found !== "object") continue;
    for (const [name, each] of Object.entries(found)) if (typeof each === "string") attributes.set(name, each);
  }
  return attributes;
}

function firstOf(value: unknown): number | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : undefined;
  return typeof first === "number" && Number.isInteger(first) && first >= 0 ? first : undefined;
}

function listAt(value: unknown, name: string): readonly unknown[] {
  const list = memberOf(value, name);
  if (!Array.isArray(list)) throw brokenSymbol(`has no list '${name}'`);
  return list;
}

function memberOf(value: unknown, name: string): unknown {
  if (value === null || typeof value !== "object" || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

function brokenSymbol(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the model's symbol ${what}`);
}
