import { InferenceError } from "@galatea/base";
import { invalidForest, newTree, newVectorTree, type NodeCount, type Tree } from "../forest.ts";
import { categoryBounds, type Comparison, splitBySteps, splitByThreshold } from "../splits.ts";
import type { ByteReader } from "./byte-reader.ts";

export type TreeliteNumber = "float32" | "float64";

export interface TreeliteTreeOptions {
  readonly index: number;
  readonly number: TreeliteNumber;
  readonly outputCount: number;
  readonly target: number | "every";
  /** True to read covers. */
  readonly explains: boolean;
  /** Counts the nodes of all trees of the model. */
  readonly nodes: NodeCount;
}

/** Comparisons, by code in the file. */
export const treeliteComparisons: readonly (Comparison | null)[] = [null, "==", "<", "<=", ">", ">="];
const leafNode = 0;
const categoricalNode = 2;

/** An array of the file, whose elements are decoded when they are accessed. */
export interface TreeliteColumn {
  readonly count: number;
  readonly at: (position: number) => number;
}

type ElementKind = keyof typeof elementKinds;

const elementKinds = {
  int8: { byteLength: 1, read: (from: ByteReader) => from.int8() },
  int32: { byteLength: 4, read: (from: ByteReader) => from.int32() },
  uint32: { byteLength: 4, read: (from: ByteReader) => from.uint32() },
  uint64: { byteLength: 8, read: (from: ByteReader) => from.uint64() },
  float32: { byteLength: 4, read: (from: ByteReader) => from.float32() },
  float64: { byteLength: 8, read: (from: ByteReader) => from.float64() },
} as const;

/** Reads the arrays of a tree sequentially, without decoding their elements. */
export class TreeliteColumns {
  readonly #from: ByteReader;
  readonly #about: string;

  constructor(from: ByteReader, about: string) {
    this.#from = from;
    this.#about = about;
  }

  take(kind: ElementKind): TreeliteColumn {
    const { byteLength, read } = elementKinds[kind];
    const from = this.#from;
    const count = from.uint64();
    const begin = from.takeElements(count, byteLength);
    return {
      count,
      at: (position) => {
        const lag = from.at;
        from.at = begin + position * byteLength;
        const value = read(from);
        from.at = lag;
        return value;
      },
    };
  }

  /** Reads a column with one element for each node. */
  takeFor(nodeCount: number, kind: ElementKind): TreeliteColumn {
    const column = this.take(kind);
    if (column.count !== nodeCount)
      throw invalidForest(this.#about, `has ${column.count} elements in a column for ${nodeCount} nodes`);
    return column;
  }
}

/** Reads the fields of one tree, up to the optional fields. */
export function readTreeliteTree(from: ByteReader, options: TreeliteTreeOptions): Tree {
  const { number, outputCount, target } = options;
  const about = `tree ${options.index}`;
  const nodeCount = from.int32();
  options.nodes.add(nodeCount, about);
  from.uint8();
  const columns = new TreeliteColumns(from, about);
  const byNode = (kind: ElementKind) => columns.takeFor(nodeCount, kind);
  const [types, left, right, features] = [byNode("int8"), byNode("int32"), byNode("int32"), byNode("int32")];
  const [defaultLeft, leafValues, thresholds, operators] = [
    byNode("int8"),
    byNode(number),
    byNode(number),
    byNode("int8"),
  ];
  const categoriesRight = byNode("int8");
  const vectors = TreeliteLists.take(columns, { kind: number, nodeCount, about });
  const categories = TreeliteLists.take(columns, { kind: "uint32", nodeCount, about });
  const counts = { values: columns.take("uint64"), known: columns.take("int8") };
  const hessians = { values: columns.take("float64"), known: columns.take("int8") };
  for (const kind of ["float64", "int8"] as const) columns.take(kind);
  const placed =
    target === "every" ? newVectorTree(nodeCount, new Float64Array(vectors.count)) : newTree(nodeCount, target);
  const covers = options.explains ? coversOf([counts, hessians], nodeCount, about) : null;
  const tree = { ...placed, covers };
  let weightCount = 0;
  for (let node = 0; node < nodeCount; node += 1) {
    const type = types.at(node);
    if (type === leafNode) {
      if (target === "every") {
        tree.leafWeights.set(vectors.exactly(outputCount, node), weightCount);
        tree.right[node] = weightCount;
        weightCount += outputCount;
      } else {
        tree.leafWeights[node] = vectors.only(node) ?? leafValues.at(node);
      }
      continue;
    }
    const isDefaultLeft = defaultLeft.at(node) === 1;
    const feature = features.at(node);
    if (type === categoricalNode) {
      const isRight = categoriesRight.at(node) === 1;
      const branches = {
        feature,
        whenTrue: (isRight ? right : left).at(node),
        whenFalse: (isRight ? left : right).at(node),
        missingTrue: isRight !== isDefaultLeft,
      };
      const bounds = categoryBounds(categories.of(node).sort(), {
        about: `node ${node} of ${about}`,
        zeroReachesDown: false,
      });
      splitBySteps(tree, node, { ...branches, bounds });
      continue;
    }
    const comparison = treeliteComparisons[operators.at(node)] ?? null;
    const threshold = thresholds.at(node);
    if (comparison === null || Number.isNaN(threshold))
      throw invalidForest(about, `has node ${node} of an unknown kind`);
    const branches = { feature, whenTrue: left.at(node), whenFalse: right.at(node), missingTrue: isDefaultLeft };
    splitByThreshold(tree, node, { ...branches, comparison, threshold });
  }
  return tree;
}

/** Returns the first of these training statistics that is known for all nodes. Throws InferenceError if there is none. */
function coversOf(
  kinds: readonly { readonly values: TreeliteColumn; readonly known: TreeliteColumn }[],
  nodeCount: number,
  about: string,
): Float64Array {
  for (const { values, known } of kinds) {
    const isKnown = (node: number) => known.at(node) === 1;
    if (values.count !== nodeCount || known.count !== nodeCount) continue;
    const nodes = Array.from({ length: nodeCount }, (_, node) => node);
    if (nodes.every(isKnown)) return Float64Array.from(nodes, (node) => values.at(node));
  }
  throw new InferenceError("UNSUPPORTED", `${about} has no cover of its nodes, which treeshap_output needs`);
}

interface Places {
  readonly values: TreeliteColumn;
  readonly begins: Pick<TreeliteColumn, "at">;
  readonly ends: Pick<TreeliteColumn, "at">;
}

/** Lists of numbers by node, stored in one array of the file. */
export class TreeliteLists {
  readonly #values: TreeliteColumn;
  readonly #begins: Places["begins"];
  readonly #ends: Places["ends"];
  readonly #about: string;
  #readCount = 0;

  constructor({ values, begins, ends }: Places, about: string) {
    this.#values = values;
    this.#begins = begins;
    this.#ends = ends;
    this.#about = about;
  }

  /** Reads the values, and for each node the begin and end of its list. */
  static take(
    columns: TreeliteColumns,
    { kind, nodeCount, about }: { readonly kind: ElementKind; readonly nodeCount: number; readonly about: string },
  ): TreeliteLists {
    const values = columns.take(kind);
    const begins = columns.takeFor(nodeCount, "uint64");
    return new TreeliteLists({ values, begins, ends: columns.takeFor(nodeCount, "uint64") }, about);
  }

  /** Number of elements of all nodes together. */
  get count(): number {
    return this.#values.count;
  }

  of(node: number): Float64Array {
    const [begin, end] = [this.#begins.at(node), this.#ends.at(node)];
    if (!(begin <= end && end <= this.#values.count))
      throw invalidForest(this.#about, `has a missing list at node ${node}`);
    // Each element belongs to one node: shared elements could make a small file take long to read.
    this.#readCount += end - begin;
    if (this.#readCount > this.#values.count) throw invalidForest(this.#about, `has the list of node ${node} twice`);
    return Float64Array.from({ length: end - begin }, (_, position) => this.#values.at(begin + position));
  }

  /** Returns the first number in the list of a node; null if the list is empty. */
  only(node: number): number | null {
    return this.of(node)[0] ?? null;
  }

  exactly(count: number, node: number): Float64Array {
    const values = this.of(node);
    if (values.length !== count)
      throw invalidForest(this.#about, `has ${values.length} numbers at leaf ${node} for ${count} outputs`);
    return values;
  }
}
