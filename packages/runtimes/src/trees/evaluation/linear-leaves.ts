import { invalidForest, type Forest, type LinearLeaves, type Tree } from "../forest.ts";
import type { ValueColumns } from "./value-columns.ts";
import { columnBytes, linearLeaf, linearTerm } from "./walk-module.ts";

interface LinearSpace {
  readonly integers: Int32Array;
  readonly doubles: Float64Array;
  readonly columns: ValueColumns;
  /** Address of the first leaf, a multiple of eight. */
  readonly at: number;
}

/** Returns the size of the linear models of a tree's leaves, in bytes; 0 if leaves have only weights. */
export function linearBytes({ linear, left }: Tree): number {
  if (linear === null) return 0;
  return leafNodes(left).length * linearLeaf.bytes + linear.features.length * linearTerm.bytes;
}

/** Returns the maximum cost of a leaf's linear model, in steps. */
export function linearSteps({ linear, left }: Tree): number {
  if (linear === null) return 0;
  return leafNodes(left).reduce((most, node) => Math.max(most, 2 * termCount(linear, node)), 0);
}

/** Throws InferenceError if a term uses a feature that the model does not have. */
export function checkLinear({ linear }: Tree, { featureCount }: Forest, about: string): void {
  for (const feature of linear?.features ?? []) {
    if (feature >= 0 && feature < featureCount) continue;
    throw invalidForest(about, `uses feature ${feature} of ${featureCount} at a leaf`);
  }
}

/** Writes the linear models of leaves, and returns their addresses by node; null if leaves have only weights. */
export function placeLinear(tree: Tree, { integers, doubles, columns, at }: LinearSpace): Int32Array | null {
  const { linear, left, right, leafWeights } = tree;
  if (linear === null) return null;
  const paths = new Int32Array(left.length);
  let end = at;
  for (const node of leafNodes(left)) {
    paths[node] = end;
    doubles[(end + linearLeaf.weight) / 8] = leafWeights[right[node] as number] as number;
    doubles[(end + linearLeaf.constant) / 8] = linear.constants[node] as number;
    integers[(end + linearLeaf.termCount) / 4] = termCount(linear, node);
    end += linearLeaf.bytes;
    const first = linear.begins[node] as number;
    for (let term = first; term < first + termCount(linear, node); term += 1, end += linearTerm.bytes) {
      doubles[(end + linearTerm.coefficient) / 8] = linear.coefficients[term] as number;
      integers[(end + linearTerm.column) / 4] = columns.anyPlace(linear.features[term] as number) * columnBytes;
    }
  }
  return paths;
}

function leafNodes(left: Int32Array): readonly number[] {
  const nodes: number[] = [];
  for (const [node, child] of left.entries()) if (child === -1) nodes.push(node);
  return nodes;
}

function termCount({ begins }: LinearLeaves, node: number): number {
  return (begins[node + 1] as number) - (begins[node] as number);
}
