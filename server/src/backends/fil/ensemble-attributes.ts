import { assert, InferenceError } from "../../base/index.ts";
import type { OnnxAttribute } from "../onnx-file/index.ts";
import { type Forest, newTree, nodesInOrder, nodesMax, type Tree } from "./forest.ts";

/** Trees as the operator TreeEnsembleRegressor takes them, and what trees that are one leaf add to the base scores. */
export interface EnsembleAttributes {
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
  readonly baseScores: readonly number[];
}

const below = 0;
const leaf = 1;
const modes = ["BRANCH_LT", "LEAF"];

/** Throws where the trees are none or are too many. */
export function ensembleAttributes(forest: Forest): EnsembleAttributes {
  const baseScores = [...forest.baseScores];
  const planted: { readonly tree: Tree; readonly order: Int32Array }[] = [];
  let nodeCount = 0;
  let weightCount = 0;
  for (const [index, tree] of forest.trees.entries()) {
    const order = nodesInOrder(tree, forest, `tree ${index}`);
    if (order.length === 1) {
      addLeaf(tree, baseScores);
      continue;
    }
    planted.push({ tree, order });
    nodeCount += order.length;
    for (const node of order) {
      const bounds = tree.steps.get(node);
      if (bounds === undefined) continue;
      // Each bound is a node, and for most of the pieces between them there may be two more.
      nodeCount += 3 * bounds.length + 2;
      weightCount += bounds.length + 1;
    }
    weightCount += ((order.length + 1) / 2) * (tree.target === "every" ? forest.outputCount : 1);
    if (nodeCount > nodesMax || weightCount > 4 * nodesMax) {
      throw new InferenceError(
        "UNSUPPORTED",
        `the trees have more than ${nodesMax} nodes, counting the ranges of their categories`,
      );
    }
  }
  const table = planted.length === 0 ? emptyTable() : new EnsembleTable(nodeCount, weightCount);
  for (const { tree, order } of planted) table.add(tree, order, forest.outputCount);
  return { attributes: { ...table.attributes(), n_targets: BigInt(forest.outputCount) }, baseScores };
}

/** A leaf without a branch adds the same to every row. ONNX Runtime does not treat such trees well. */
function addLeaf({ target, leafWeights, right }: Tree, baseScores: number[]): void {
  const begin = right[0] as number;
  const outputs = target === "every" ? baseScores.keys() : [target];
  let place = begin;
  for (const output of outputs) baseScores[output] = (baseScores[output] as number) + (leafWeights[place++] as number);
}

/** The operator wants a tree: one that adds nothing on both sides. */
function emptyTable(): EnsembleTable {
  const table = new EnsembleTable(3, 2);
  const tree = newTree(3, 0);
  [tree.left[0], tree.right[0]] = [1, 2];
  table.add(tree, Int32Array.of(0, 1, 2), 1);
  return table;
}

/** Columns that grow tree by tree, of so many nodes and weights at most. */
class EnsembleTable {
  readonly #trees: Int32Array;
  readonly #ids: Int32Array;
  readonly #features: Int32Array;
  readonly #values: Float32Array;
  readonly #whenTrue: Int32Array;
  readonly #whenFalse: Int32Array;
  readonly #missingTrue: Int32Array;
  readonly #modes: Uint8Array;
  readonly #weightTrees: Int32Array;
  readonly #weightNodes: Int32Array;
  readonly #weightOutputs: Int32Array;
  readonly #weights: Float32Array;
  #treeCount = 0;
  #nodeCount = 0;
  #weightCount = 0;

  constructor(nodeCount: number, weightCount: number) {
    const integers = (count: number) => new Int32Array(count);
    this.#trees = integers(nodeCount);
    this.#ids = integers(nodeCount);
    this.#features = integers(nodeCount);
    this.#values = new Float32Array(nodeCount);
    this.#whenTrue = integers(nodeCount);
    this.#whenFalse = integers(nodeCount);
    this.#missingTrue = integers(nodeCount);
    this.#modes = new Uint8Array(nodeCount);
    this.#weightTrees = integers(weightCount);
    this.#weightNodes = integers(weightCount);
    this.#weightOutputs = integers(weightCount);
    this.#weights = new Float32Array(weightCount);
  }

  add(tree: Tree, order: Int32Array, outputCount: number): void {
    const ids = new Int32Array(tree.left.length);
    for (const [id, node] of order.entries()) ids[node] = id;
    let nextId = order.length;
    for (const node of order) {
      const id = ids[node] as number;
      if (tree.left[node] === -1) {
        this.#node({ id, mode: leaf, feature: 0, value: 0, whenTrue: 0, whenFalse: 0, missingTrue: false });
        this.#leafWeights(tree, { node, id, outputCount });
        continue;
      }
      const left = ids[tree.left[node] as number] as number;
      const right = ids[tree.right[node] as number] as number;
      const branch = {
        id,
        feature: tree.features[node] as number,
        left,
        right,
        missingLeft: tree.missingLeft[node] === 1,
      };
      const bounds = tree.steps.get(node);
      if (bounds === undefined) this.#branch(branch, tree.thresholds[node] as number);
      else nextId = this.#steps(branch, bounds, nextId);
    }
    this.#treeCount += 1;
  }

  #branch({ id, feature, left, right, missingLeft }: Branch, value: number): void {
    this.#node({ id, mode: below, feature, value, whenTrue: left, whenFalse: right, missingTrue: missingLeft });
  }

  /**
   * A search among the bounds, whose ends are the two branches. A missing value takes the way of a value that lies on its side. ONNX Runtime
   * allows more than one way to a node if only one of them, the first that it comes to, is a false branch, and it follows false branches first.
   */
  #steps(branch: Branch, bounds: Float32Array, nextId: number): number {
    if (bounds.length === 0) {
      // Nothing is below minus infinity: all go right.
      this.#branch(branch, -Infinity);
      return nextId;
    }
    let id = nextId;
    const missingPiece = branch.missingLeft ? 1 : 0;
    const placed = new Set<number>();
    const compare = (own: number, bound: number, ways: Pick<Node, "whenTrue" | "whenFalse" | "missingTrue">): Node => {
      const { whenTrue, whenFalse, missingTrue } = ways;
      return {
        id: own,
        mode: below,
        feature: branch.feature,
        value: bounds[bound] as number,
        whenTrue,
        whenFalse,
        missingTrue,
      };
    };
    /** The node for pieces `first` to `last`, which lie between the bounds. */
    const search = (
      first: number,
      last: number,
      { own, isFalse }: { own: number | null; isFalse: boolean },
    ): number => {
      if (first < last) {
        const mine = own ?? id++;
        // The first node of a tree is its root, whatever comes behind it.
        const at = this.#nodeCount++;
        const middle = (first + last) >> 1;
        const whenFalse = search(middle + 1, last, { own: null, isFalse: true });
        const whenTrue = search(first, middle, { own: null, isFalse: false });
        this.#put(at, compare(mine, middle, { whenTrue, whenFalse, missingTrue: missingPiece <= middle }));
        return mine;
      }
      const end = first % 2 === 1 ? branch.left : branch.right;
      if (!isFalse || !placed.has(end)) {
        placed.add(end);
        return end;
      }
      // All that comes here is below the next bound, so the leaf on its other side is never come to.
      const turn = id++;
      const nowhere = id++;
      this.#node(compare(turn, first, { whenTrue: end, whenFalse: nowhere, missingTrue: true }));
      this.#node({ id: nowhere, mode: leaf, feature: 0, value: 0, whenTrue: 0, whenFalse: 0, missingTrue: false });
      this.#weight(nowhere, 0, 0);
      return turn;
    };
    search(0, bounds.length, { own: branch.id, isFalse: false });
    return id;
  }

  #node(node: Node): void {
    this.#put(this.#nodeCount++, node);
  }

  #put(at: number, node: Node): void {
    this.#trees[at] = this.#treeCount;
    this.#ids[at] = node.id;
    this.#features[at] = node.feature;
    this.#values[at] = node.value;
    this.#whenTrue[at] = node.whenTrue;
    this.#whenFalse[at] = node.whenFalse;
    this.#missingTrue[at] = node.missingTrue ? 1 : 0;
    this.#modes[at] = node.mode;
  }

  #leafWeights(tree: Tree, { node, id, outputCount }: { node: number; id: number; outputCount: number }): void {
    const { target, leafWeights, right } = tree;
    const begin = right[node] as number;
    if (target !== "every") return this.#weight(id, target, leafWeights[begin] as number);
    for (let output = 0; output < outputCount; output += 1)
      this.#weight(id, output, leafWeights[begin + output] as number);
  }

  #weight(id: number, output: number, weight: number): void {
    const at = this.#weightCount++;
    this.#weightTrees[at] = this.#treeCount;
    this.#weightNodes[at] = id;
    this.#weightOutputs[at] = output;
    this.#weights[at] = weight;
  }

  attributes(): Readonly<Record<string, OnnxAttribute>> {
    assert(
      this.#nodeCount <= this.#ids.length && this.#weightCount <= this.#weights.length,
      "all nodes and weights have a place",
    );
    const nodes = (column: Int32Array) => column.subarray(0, this.#nodeCount);
    const weights = (column: Int32Array) => column.subarray(0, this.#weightCount);
    return {
      aggregate_function: "SUM",
      post_transform: "NONE",
      nodes_treeids: nodes(this.#trees),
      nodes_nodeids: nodes(this.#ids),
      nodes_featureids: nodes(this.#features),
      nodes_values: this.#values.subarray(0, this.#nodeCount),
      nodes_truenodeids: nodes(this.#whenTrue),
      nodes_falsenodeids: nodes(this.#whenFalse),
      nodes_missing_value_tracks_true: nodes(this.#missingTrue),
      nodes_modes: { words: modes, places: this.#modes.subarray(0, this.#nodeCount) },
      target_treeids: weights(this.#weightTrees),
      target_nodeids: weights(this.#weightNodes),
      target_ids: weights(this.#weightOutputs),
      target_weights: this.#weights.subarray(0, this.#weightCount),
    };
  }
}

interface Branch {
  readonly id: number;
  readonly feature: number;
  readonly left: number;
  readonly right: number;
  readonly missingLeft: boolean;
}

interface Node {
  readonly id: number;
  readonly mode: number;
  readonly feature: number;
  readonly value: number;
  readonly whenTrue: number;
  readonly whenFalse: number;
  readonly missingTrue: boolean;
}
