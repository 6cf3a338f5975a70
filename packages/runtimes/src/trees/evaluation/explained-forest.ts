import { InferenceError } from "@galatea/base";
import { type Forest, nodesInOrder, type Tree } from "../forest.ts";

/** The data for contributions, in addition to the trees. */
export interface Explained {
  /** Offset of the covers of nodes: the amount of the training data that reached each node. */
  readonly coversAt: number;
  /** For each output, the average result of the trees over the training data, plus the base score. */
  readonly expected: readonly number[];
  /** Number of levels of the deepest tree. */
  readonly depthMax: number;
  /** Cost of the contributions of one row, in steps. */
  readonly rowSteps: number;
}

/** Maximum cost of a row, which takes some seconds: the evaluation of a row cannot be aborted. */
const rowStepsMax = 2 ** 30;

/** Returns the data for a forest's contributions. Throws InferenceError if contributions are not possible for this forest. */
export function explainedOf(forest: Forest, coversAt: number): Explained {
  const expected = [...forest.baseScores];
  let depthMax = 0;
  let rowSteps = forest.outputCount * (forest.featureCount + 1);
  for (const [index, tree] of forest.trees.entries()) {
    if (tree.linear !== null) {
      throw new InferenceError(
        "UNSUPPORTED",
        `tree ${index} has linear models at its leaves, and treeshap_output is not computed for such trees`,
      );
    }
    if (tree.steps.size > 0) {
      throw new InferenceError(
        "UNSUPPORTED",
        `tree ${index} splits by category, or treats values near zero separately (zero_as_missing), and treeshap_output is not computed for such trees`,
      );
    }
    const { depth, leafCount } = addExpected(tree, { order: nodesInOrder(tree, forest, `tree ${index}`), expected });
    depthMax = Math.max(depthMax, depth);
    rowSteps += leafCount * (depth + 1) ** 2;
  }
  if (rowSteps > rowStepsMax) {
    throw new InferenceError(
      "UNSUPPORTED",
      `treeshap_output would take ${rowSteps} steps for each row; the limit is ${rowStepsMax}`,
    );
  }
  return { coversAt, expected, depthMax, rowSteps };
}

/** Adds the average result of a tree over the training data to `expected`. */
function addExpected(
  tree: Tree,
  { order, expected }: { readonly order: Int32Array; readonly expected: number[] },
): { readonly depth: number; readonly leafCount: number } {
  const shares = new Float64Array(tree.left.length);
  const depths = new Int32Array(tree.left.length);
  let depth = 0;
  let leafCount = 0;
  shares[0] = 1;
  for (const node of order) {
    depth = Math.max(depth, depths[node] as number);
    const share = shares[node] as number;
    const right = tree.right[node] as number;
    if (tree.left[node] === -1) {
      leafCount += 1;
      const outputs = tree.target === "every" ? expected.keys() : [tree.target];
      let position = right;
      for (const output of outputs) expected[output]! += share * (tree.leafWeights[position++] as number);
      continue;
    }
    const cover = tree.covers?.[node] ?? 0;
    for (const child of [tree.left[node] as number, right]) {
      shares[child] = cover > 0 ? (share * (tree.covers?.[child] ?? 0)) / cover : 0;
      depths[child] = (depths[node] as number) + 1;
    }
  }
  return { depth, leafCount };
}
