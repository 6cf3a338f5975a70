import type { Precision } from "../forest.ts";
import { infinityBits } from "./float-keys.ts";
import { type Code, encodeModule, wasm } from "./wasm-code.ts";

/**
 * Evaluates trees in WebAssembly. Each step of a path waits for memory, so the code follows eight paths in parallel: eight rows through one
 * tree, or, for few rows, one row through eight trees. Steps do not branch on comparisons, which processors cannot predict; a path that
 * has reached its leaf stays there until all eight have. For 500 trees and 10,000 rows (bench/rows/trees.ts), this exceeds the rate of
 * XGBoost's library; ONNX Runtime, which evaluates one row at a time, reaches 0.45 of it.
 */
export const pathCount = 8;

/**
 * Field offsets of a node, which has 16 bytes: the key with which a value is compared, the offset of the column in a group, the address of
 * the two consecutive children, and the weight of a leaf.
 */
export const node = { bytes: 16, key: 0, column: 4, children: 8, weight: 12 } as const;

/**
 * Field offsets of a tree, which has 32 bytes. Its evaluation takes `levels` steps; if `goesOn` is not 0, more steps follow until all paths
 * have reached leaves. Fields with the prefix `octet` apply to the eight trees from this one on.
 */
export const tree = {
  bytes: 32,
  root: 0,
  /** Offset of the sums of the tree's output in the sums of a group. */
  sums: 4,
  /**
   * The content of a leaf's field `weight`. 0: its weight. A positive count: the address of this many weights, one for each output.
   * `linearLeaves`: the address of a linear model.
   */
  weightCount: 8,
  levels: 12,
  goesOn: 16,
  octetLevels: 20,
  octetGoesOn: 24,
} as const;

export const linearLeaves = -1;
/** Field offsets of the linear model of a leaf: 24 bytes, followed by 16 bytes for each term. */
export const linearLeaf = {
  bytes: 24,
  /** Value for rows in which a feature of the linear model is missing. */
  weight: 0,
  constant: 8,
  termCount: 16,
} as const;
/** Field offsets of a term: a coefficient, and the offset of its column in a group. */
export const linearTerm = { bytes: 16, coefficient: 0, column: 8 } as const;

/** Size of a column in a group of eight rows, whose layout is [column][row]. */
export const columnBytes = 4 * pathCount;
/** Size of an output in the sums of a group, which are doubles in the layout [output][row]. */
export const outputBytes = 8 * pathCount;

/** The functions of the module, by precision of sums. Float32 sums are stored as doubles too, and rounded after each addition. */
export type WalkModuleFunctions = Readonly<Record<`walkRows_${Precision}`, WalkFunctions["walkRows"]>> &
  Readonly<Record<`walkTrees_${Precision}`, WalkFunctions["walkTrees"]>>;

export interface WalkFunctions {
  /** Adds the values of all trees to `sums`, for the groups of rows from `columns` to `columnsEnd`. */
  readonly walkRows: (
    trees: number,
    treesEnd: number,
    columns: number,
    columnsEnd: number,
    groupBytes: number,
    sums: number,
    sumBytes: number,
  ) => void;
  /** Adds the values of all trees, eight at a time, for one row. `column` and `sums` are the addresses of its first value and sum. */
  readonly walkTrees: (trees: number, treesEnd: number, column: number, sums: number) => void;
}

/** Returns the module's bytes. */
export function encodeWalk(): Uint8Array<ArrayBuffer> {
  // `wasm.call` refers to the first three functions by index, so their order matters.
  return encodeModule([
    addVector("float64"),
    addVector("float32"),
    addLinear,
    ...(["float64", "float32"] as const).flatMap((precision) => [walkRows(precision), walkTrees(precision)]),
  ]);
}

const indexOfAddVector: Readonly<Record<Precision, number>> = { float64: 0, float32: 1 };
const indexOfAddLinear = 2;

const { get, set, tee, constant, add, loadInteger, loadFloat, loadDouble, storeDouble, addDouble, promote, demote } =
  wasm;
const paths = Array.from({ length: pathCount }, (_, path) => path);

/** Adds two numbers. The sum of two float32 numbers in float64, rounded once, equals their float32 sum. */
const sumOf: Readonly<Record<Precision, (left: Code, right: Code) => Code>> = {
  float64: addDouble,
  float32: (left, right) => promote(demote(addDouble(left, right))),
};

/** Returns a function that adds `count` weights to the sums of as many outputs. */
function addVector(precision: Precision) {
  const [weights, sums, count] = [0, 1, 2];
  const body = wasm.doWhile(
    [
      ...storeDouble(get(sums), sumOf[precision](loadDouble(get(sums)), promote(loadFloat(get(weights))))),
      ...set(weights, add(get(weights), constant(4))),
      ...set(sums, add(get(sums), constant(outputBytes))),
    ],
    tee(count, wasm.subtract(get(count), constant(1))),
  );
  return { name: `addVector_${precision}`, parameterCount: 3, localCount: 0, body };
}

/** Function that adds the result of a leaf's linear model for the row whose values begin at `column`. */
const addLinear = (() => {
  const [leaf, sum, column, left, term, missing, key] = [0, 1, 2, 3, 4, 5, 6];
  const toTerms = (body: Code) => [
    ...set(term, add(get(leaf), constant(linearLeaf.bytes))),
    ...wasm.when(
      tee(left, loadInteger(get(leaf), linearLeaf.termCount)),
      wasm.doWhile(
        [
          ...set(key, loadInteger(add(get(column), loadInteger(get(term), linearTerm.column)))),
          ...body,
          ...set(term, add(get(term), constant(linearTerm.bytes))),
        ],
        tee(left, wasm.subtract(get(left), constant(1))),
      ),
    ),
  ];
  const addTo = (value: Code) => storeDouble(get(sum), addDouble(loadDouble(get(sum)), value));
  const isMissing = wasm.belowUnsigned(constant(2 * infinityBits), add(get(key), constant(infinityBits)));
  const isNegative = wasm.below(get(key), constant(0));
  const bits = wasm.select(isNegative, wasm.subtract(constant(-(2 ** 31)), get(key)), get(key));
  const product = wasm.multiplyDouble(loadDouble(get(term), linearTerm.coefficient), promote(wasm.floatOfBits(bits)));
  const body = [
    ...toTerms(set(missing, wasm.or(get(missing), isMissing))),
    ...wasm.when(get(missing), addTo(loadDouble(get(leaf), linearLeaf.weight)), [
      ...addTo(loadDouble(get(leaf), linearLeaf.constant)),
      ...toTerms(addTo(product)),
    ]),
  ];
  return { name: "addLinear", parameterCount: 3, localCount: 4, body };
})();

interface Walk {
  /** Index of the local variable with the node of the first path; the other paths follow. */
  readonly nodes: number;
  readonly group: number;
  readonly groupOffset: (path: number) => number;
  readonly levels: number;
  readonly levelCount: Code;
  readonly mark: number;
  readonly goesOn: Code;
}

/** Returns code that moves all paths to their leaves. */
function walk({ nodes, group, groupOffset, levels, levelCount, mark, goesOn }: Walk): Code {
  const step = paths.flatMap((path) => {
    const at = get(nodes + path);
    const value = loadInteger(add(get(group), loadInteger(at, node.column)), groupOffset(path));
    const isSecond = wasm.greaterOrEqual(value, loadInteger(at, node.key));
    return set(nodes + path, add(loadInteger(at, node.children), wasm.shiftLeft(isSecond, constant(4))));
  });
  // Children have higher addresses than their parents, so the sum of the addresses grows until all paths are at leaves. `nodeBytesMax`
  // ensures that the sum fits into 32 bits.
  const sumOfNodes = paths.map((path) => get(nodes + path)).reduce((left, right) => add(left, right));
  return [
    ...wasm.when(tee(levels, levelCount), wasm.doWhile(step, tee(levels, wasm.subtract(get(levels), constant(1))))),
    ...wasm.when(goesOn, [
      ...set(mark, sumOfNodes),
      ...wasm.doWhile(step, wasm.notEqual(get(mark), tee(mark, sumOfNodes))),
    ]),
  ];
}

interface Leaf {
  readonly precision: Precision;
  readonly at: Code;
  readonly sums: Code;
  readonly sumOffset: number;
  readonly weightCount: Code;
  /** Address of the row's values. */
  readonly column: Code;
}

/** Returns code that adds a leaf's value: one weight, several weights, or the result of a linear model. */
function addLeaf({ precision, at, sums, sumOffset, weightCount, column }: Leaf): Code {
  const weight = promote(loadFloat(at, node.weight));
  const one = storeDouble(sums, sumOf[precision](loadDouble(sums, sumOffset), weight), sumOffset);
  const [address, sum] = [loadInteger(at, node.weight), add(sums, constant(sumOffset))];
  const isLinear = wasm.below(weightCount, constant(0));
  const addTerms = wasm.call(indexOfAddLinear, [address, sum, column]);
  const addWeights = wasm.call(indexOfAddVector[precision], [address, sum, weightCount]);
  const more = wasm.when(isLinear, addTerms, addWeights);
  return wasm.when(wasm.isZero(weightCount), one, more);
}

function walkRows(precision: Precision) {
  const [trees, treesEnd, columns, columnsEnd, groupBytes, sums, sumBytes] = [0, 1, 2, 3, 4, 5, 6];
  const [group, sum, levels, mark, nodes] = [7, 8, 9, 10, 11];
  const field = (offset: number) => loadInteger(get(trees), offset);
  const ofGroup = [
    ...paths.flatMap((path) => set(nodes + path, field(tree.root))),
    ...walk({
      nodes,
      group,
      groupOffset: (path) => 4 * path,
      levels,
      levelCount: field(tree.levels),
      mark,
      goesOn: field(tree.goesOn),
    }),
    ...paths.flatMap((path) =>
      addLeaf({
        precision,
        at: get(nodes + path),
        sums: get(sum),
        sumOffset: 8 * path,
        weightCount: field(tree.weightCount),
        column: add(get(group), constant(4 * path)),
      }),
    ),
    ...set(sum, add(get(sum), get(sumBytes))),
  ];
  const ofTree = [
    ...set(group, get(columns)),
    ...set(sum, add(get(sums), field(tree.sums))),
    ...wasm.doWhile(ofGroup, wasm.belowUnsigned(tee(group, add(get(group), get(groupBytes))), get(columnsEnd))),
  ];
  const body = wasm.doWhile(
    ofTree,
    wasm.belowUnsigned(tee(trees, add(get(trees), constant(tree.bytes))), get(treesEnd)),
  );
  return { name: `walkRows_${precision}`, parameterCount: 7, localCount: 4 + pathCount, body };
}

function walkTrees(precision: Precision) {
  const [trees, treesEnd, column, sums] = [0, 1, 2, 3];
  const [levels, mark, nodes] = [4, 5, 6];
  const field = (path: number, offset: number) => loadInteger(get(trees), path * tree.bytes + offset);
  const body = wasm.doWhile(
    [
      ...paths.flatMap((path) => set(nodes + path, field(path, tree.root))),
      ...walk({
        nodes,
        group: column,
        groupOffset: () => 0,
        levels,
        levelCount: field(0, tree.octetLevels),
        mark,
        goesOn: field(0, tree.octetGoesOn),
      }),
      ...paths.flatMap((path) =>
        addLeaf({
          precision,
          at: get(nodes + path),
          sums: add(get(sums), field(path, tree.sums)),
          sumOffset: 0,
          weightCount: field(path, tree.weightCount),
          column: get(column),
        }),
      ),
    ],
    wasm.belowUnsigned(tee(trees, add(get(trees), constant(pathCount * tree.bytes))), get(treesEnd)),
  );
  return { name: `walkTrees_${precision}`, parameterCount: 4, localCount: 2 + pathCount, body };
}
