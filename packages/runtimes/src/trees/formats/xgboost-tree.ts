import { invalidForest, newTree, newVectorTree, type NodeCount, type Tree } from "../forest.ts";
import { categoryBounds, splitBelow, splitBySteps } from "../splits.ts";
import type { Members } from "./document.ts";

/** A tree before `buildXgboostTree` adds the data that follow the trees in the document. */
export interface SerializedTree {
  readonly tree: Tree;
  /** Number of values of each leaf. */
  readonly vectorLength: number;
  readonly path: string;
}

export interface XgboostTreeOptions {
  readonly explains: boolean;
  /** Counts the nodes of all trees of the model. */
  readonly nodes: NodeCount;
  readonly checkNames: (members: Members, known: readonly string[]) => void;
}

const knownFields = {
  tree: [
    "base_weights",
    "categories",
    "categories_nodes",
    "categories_segments",
    "categories_sizes",
    "default_left",
    "id",
    "leaf_child_counts",
    "leaf_weights",
    "left_children",
    "loss_changes",
    "parents",
    "right_children",
    "split_conditions",
    "split_indices",
    "split_type",
    "sum_hessian",
    "tree_param",
  ],
  parameters: ["num_feature", "num_nodes", "size_leaf_vector", "num_deleted"],
} as const;

/** Known fields that do not affect predictions. */
export const xgboostTreeExtras: ReadonlySet<string> = new Set([
  "id",
  "leaf_child_counts",
  "loss_changes",
  "parents",
  "sum_hessian",
]);

/** Value in `split_type` for a split by category. */
const categorical = 1;
/** Exclusive upper limit of categories, as in XGBoost. */
const categoriesEnd = 2 ** 24;

export function readXgboostTree(written: Members, options: XgboostTreeOptions): SerializedTree {
  options.checkNames(written, knownFields.tree);
  const parameters = written.object("tree_param");
  options.checkNames(parameters, knownFields.parameters);
  const nodeCount = parameters.integer("num_nodes");
  options.nodes.add(nodeCount, parameters.path);
  const vectorLength = Math.max(1, parameters.integer("size_leaf_vector", 1));
  const column = (name: string): Float64Array => columnOf(written, name, nodeCount);
  const columns: Columns = {
    left: column("left_children"),
    right: column("right_children"),
    features: column("split_indices"),
    conditions: column("split_conditions"),
    defaultLeft: column("default_left"),
    types: written.has("split_type") && written.numbers("split_type").length > 0 ? column("split_type") : null,
  };
  const tree = vectorLength === 1 ? newTree(nodeCount, 0) : readLeafVectors(columns, { written, vectorLength });
  readSplits(tree, columns, written);
  if (vectorLength === 1) {
    for (let node = 0; node < nodeCount; node += 1)
      if (columns.left[node] === -1) tree.leafWeights[node] = columns.conditions[node] as number;
  }
  const covers = options.explains ? column("sum_hessian") : null;
  return { tree: { ...tree, covers }, vectorLength, path: written.path };
}

export interface XgboostTreePosition {
  readonly outputCount: number;
  /** Index of the output to which the tree adds, if its leaves have one value. */
  readonly target: number;
  /** Factor by which the leaves are multiplied (DART). */
  readonly weight: number;
}

/** Returns the completed tree. Changes `tree`, so the caller must not use it afterwards. */
export function buildXgboostTree(
  { tree, vectorLength, path }: SerializedTree,
  { outputCount, target, weight }: XgboostTreePosition,
): Tree {
  if (vectorLength !== 1 && vectorLength !== outputCount)
    throw invalidForest(path, `has leaves of ${vectorLength} numbers for ${outputCount} outputs`);
  if (vectorLength === 1 && !(Number.isInteger(target) && target >= 0 && target < outputCount))
    throw invalidForest(path, `adds to output ${target} of ${outputCount}`);
  const { leafWeights } = tree;
  const factor = Math.fround(weight);
  for (const position of leafWeights.keys())
    leafWeights[position] = Math.fround(Math.fround(leafWeights[position] as number) * factor);
  return { ...tree, target: vectorLength === 1 ? target : "every" };
}

interface Columns {
  readonly left: Float64Array;
  readonly right: Float64Array;
  readonly features: Float64Array;
  readonly conditions: Float64Array;
  readonly defaultLeft: Float64Array;
  readonly types: Float64Array | null;
}

function columnOf(written: Members, name: string, count: number): Float64Array {
  const values = written.numbers(name);
  if (values.length !== count)
    throw invalidForest(`${written.path}.${name}`, `has ${values.length} numbers for ${count} nodes`);
  return values;
}

/**
 * Reads the leaf vectors. They are in `base_weights`, by node, or, since XGBoost 3.1, in `leaf_weights`, at the index that the leaf stores
 * in place of its right child.
 */
function readLeafVectors(
  { left, right }: Columns,
  { written, vectorLength }: { readonly written: Members; readonly vectorLength: number },
): Tree {
  const byLeaf = written.has("leaf_weights") && written.numbers("leaf_weights").length > 0;
  const vectors = byLeaf
    ? written.numbers("leaf_weights")
    : columnOf(written, "base_weights", left.length * vectorLength);
  const tree = newVectorTree(left.length, vectors);
  const received = new Uint8Array(Math.floor(vectors.length / vectorLength));
  for (let node = 0; node < left.length; node += 1) {
    if (left[node] !== -1) continue;
    const position = byLeaf ? (right[node] as number) : node;
    // Each vector belongs to one leaf: with shared vectors, a small file could become a large model.
    if (received[position] !== 0) throw invalidForest(written.path, `has a leaf ${node} without its own weights`);
    received[position] = 1;
    tree.right[node] = position * vectorLength;
  }
  return tree;
}

function readSplits(tree: Tree, columns: Columns, written: Members): void {
  const categories = columns.types === null ? null : new NodeCategories(written);
  for (let node = 0; node < columns.left.length; node += 1) {
    const left = columns.left[node] as number;
    if (left === -1) continue;
    const right = columns.right[node] as number;
    const feature = columns.features[node] as number;
    // Checks for integers, because an Int32Array would silently convert other numbers.
    if (!Number.isInteger(left) || !Number.isInteger(right) || !Number.isInteger(feature)) {
      throw invalidForest(written.path, `has no children or no feature at node ${node}`);
    }
    const isDefaultLeft = columns.defaultLeft[node] === 1;
    if (columns.types?.[node] === categorical) {
      const bounds = (categories as NodeCategories).boundsOf(node);
      splitBySteps(tree, node, { feature, whenTrue: right, whenFalse: left, missingTrue: !isDefaultLeft, bounds });
      continue;
    }
    const threshold = Math.fround(columns.conditions[node] as number);
    splitBelow(tree, node, { feature, threshold, whenTrue: left, whenFalse: right, missingTrue: isDefaultLeft });
  }
}

/** The sets of categories of a tree's nodes. A row whose category is in the set goes right. */
class NodeCategories {
  readonly #positions = new Map<number, number>();
  readonly #written: Members;
  readonly #begins: Float64Array;
  readonly #counts: Float64Array;
  readonly #categories: Float64Array;
  #readCount = 0;

  constructor(written: Members) {
    const list = (name: string) => (written.has(name) ? written.numbers(name) : new Float64Array(0));
    const nodes = list("categories_nodes");
    this.#written = written;
    this.#begins = list("categories_segments");
    this.#counts = list("categories_sizes");
    this.#categories = list("categories");
    if (this.#begins.length !== nodes.length || this.#counts.length !== nodes.length) {
      throw invalidForest(written.path, "has lists of categories of different lengths");
    }
    for (const [position, node] of nodes.entries()) this.#positions.set(node, position);
  }

  boundsOf(node: number): Float32Array {
    const position = this.#positions.get(node);
    if (position === undefined) throw invalidForest(this.#written.path, `has no categories for node ${node}`);
    const begin = this.#begins[position] as number;
    const count = this.#counts[position] as number;
    // Each category belongs to one node: with shared categories, a small file could take a long time to read.
    this.#readCount += count;
    if (
      !(
        begin >= 0 &&
        count >= 0 &&
        begin + count <= this.#categories.length &&
        this.#readCount <= this.#categories.length
      )
    ) {
      throw invalidForest(this.#written.path, `has no categories for node ${node}`);
    }
    const categories = this.#categories.slice(begin, begin + count).sort();
    if (categories.some((category) => !(Number.isInteger(category) && category >= 0 && category < categoriesEnd))) {
      throw invalidForest(this.#written.path, `has an invalid category at node ${node}`);
    }
    return categoryBounds(categories, { about: `node ${node} of ${this.#written.path}`, zeroReachesDown: false });
  }
}
