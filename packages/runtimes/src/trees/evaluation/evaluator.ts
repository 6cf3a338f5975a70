import { assert } from "@galatea/base";
import { type OutputForm, predictionColumns, contributionColumns } from "./output-form.ts";
import type { CompactForest } from "./compact-forest.ts";
import { Explainer } from "./explainer.ts";
import { type FinishRow, finishRow } from "./finish-rows.ts";
import { keyOfBits, missingAboveKey, missingBelowKey } from "./float-keys.ts";
import { type WasmModule, webAssembly } from "./web-assembly.ts";
import {
  columnBytes,
  encodeWalk,
  pathCount,
  outputBytes,
  type WalkFunctions,
  type WalkModuleFunctions,
} from "./walk-module.ts";

/** A model in the form in which threads evaluate it. */
export interface TreeModel {
  readonly forest: CompactForest;
  readonly outputForm: OutputForm;
}

/** Consecutive rows, and the destination of their results. */
export interface RowRange {
  /** Features of each row, as the bits of float32. */
  readonly rows: Int32Array;
  readonly rowCount: number;
  /** Destination of the predictions; null if they are not requested. */
  readonly predictions: Float32Array | null;
  /** Destination of the contributions; null if not requested. Each output of a row has a number for each feature, and the bias. */
  readonly contributions: Float32Array | null;
}

/** Maximum number of rows that are evaluated one at a time, through eight trees in parallel. */
const singleRowsMax = 2;

/** Compiles the WebAssembly module, which all models and threads share. */
export function compileTraversal(): WasmModule {
  return new webAssembly.Module(encodeWalk());
}

/** Evaluates a model in one thread, with one of its workspaces. */
export class Evaluator {
  readonly #forest: CompactForest;
  readonly #walk: WalkFunctions;
  readonly #finish: FinishRow;
  readonly #predictionColumns: number;
  readonly #columns: Int32Array;
  readonly #groupBytes: number;
  readonly #sumBytes: number;
  readonly #valuesAt: number;
  readonly #sumsAt: number;
  readonly #values: Int32Array;
  readonly #sums: Float64Array;
  readonly #scores: Float64Array;
  /** Created when first used. */
  #explainer: Explainer | null = null;

  constructor(walk: WasmModule, { forest, outputForm }: TreeModel, workspace: number) {
    const { memory, columnCount, outputCount, groupsMax, workspacesAt, workspaceBytes } = forest;
    this.#forest = forest;
    const walks = new webAssembly.Instance(walk, { trees: { memory } }).exports as WalkModuleFunctions;
    const { precision } = forest;
    this.#walk = { walkRows: walks[`walkRows_${precision}`], walkTrees: walks[`walkTrees_${precision}`] };
    this.#finish = finishRow(forest.transform, outputForm, precision);
    this.#predictionColumns = predictionColumns(forest, outputForm);
    this.#columns = new Int32Array(memory.buffer, forest.columnsAt, columnCount);
    this.#groupBytes = columnCount * columnBytes;
    this.#sumBytes = outputCount * outputBytes;
    this.#sumsAt = workspacesAt + workspace * workspaceBytes;
    this.#valuesAt = this.#sumsAt + groupsMax * this.#sumBytes;
    this.#sums = new Float64Array(memory.buffer, this.#sumsAt, (groupsMax * this.#sumBytes) / 8);
    this.#values = new Int32Array(memory.buffer, this.#valuesAt, (groupsMax * this.#groupBytes) / 4);
    this.#scores = new Float64Array(outputCount);
  }

  evaluate(range: RowRange): void {
    const rowsAtOnce = this.#forest.groupsMax * pathCount;
    for (let first = 0; first < range.rowCount; first += rowsAtOnce) {
      this.#evaluateSome(range, first, Math.min(rowsAtOnce, range.rowCount - first));
    }
  }

  #evaluateSome(range: RowRange, first: number, rowCount: number): void {
    this.#arrangeColumns(range.rows, first, rowCount);
    if (range.predictions !== null) {
      this.#walkSome(rowCount);
      this.#writePredictions(range.predictions, first, rowCount);
    }
    if (range.contributions !== null) this.#explain(range.contributions, first, rowCount);
  }

  #walkSome(rowCount: number): void {
    const { trees, treesEnd, octetsEnd } = this.#forest;
    const groupCount = Math.ceil(rowCount / pathCount);
    this.#beginSums(groupCount);
    const rest = rowCount % pathCount;
    const wholeCount = rest !== 0 && rest <= singleRowsMax ? groupCount - 1 : groupCount;
    if (wholeCount > 0 && treesEnd > trees) {
      const valuesEnd = this.#valuesAt + wholeCount * this.#groupBytes;
      this.#walk.walkRows(trees, treesEnd, this.#valuesAt, valuesEnd, this.#groupBytes, this.#sumsAt, this.#sumBytes);
    }
    for (let row = wholeCount * pathCount; row < rowCount; row += 1) {
      const path = row % pathCount;
      const values = this.#valuesAt + wholeCount * this.#groupBytes + 4 * path;
      this.#walk.walkTrees(trees, octetsEnd, values, this.#sumsAt + wholeCount * this.#sumBytes + 8 * path);
    }
  }

  /** Initializes sums: with 0 in float64, where base scores are added at the end; with the base scores in float32, as in XGBoost. */
  #beginSums(groupCount: number): void {
    const { precision, baseScores, outputCount } = this.#forest;
    if (precision === "float64") this.#sums.fill(0, 0, (groupCount * this.#sumBytes) / 8);
    else {
      for (let at = 0; at < groupCount * outputCount; at += 1)
        this.#sums.fill(baseScores[at % outputCount] as number, at * pathCount, (at + 1) * pathCount);
    }
  }

  #explain(contributions: Float32Array, first: number, rowCount: number): void {
    const { explained } = this.#forest;
    assert(explained !== null, "a model is read together with its configuration");
    this.#explainer ??= new Explainer(this.#forest, explained);
    const ofRow = new Float64Array(contributionColumns(this.#forest));
    for (let row = 0; row < rowCount; row += 1) {
      const group = Math.floor(row / pathCount);
      this.#explainer.explain(this.#valuesAt + group * this.#groupBytes + 4 * (row % pathCount), ofRow);
      contributions.set(ofRow, (first + row) * ofRow.length);
    }
  }

  /** Converts the features of rows to keys in the workspace, column by column for each group of eight rows. */
  #arrangeColumns(rows: Int32Array, first: number, rowCount: number): void {
    const { featureCount, columnCount } = this.#forest;
    const values = this.#values;
    for (let column = 0; column < columnCount; column += 1) {
      const code = this.#columns[column] as number;
      const missingKey = (code & 1) === 1 ? missingBelowKey : missingAboveKey;
      let from = first * featureCount + (code >> 1);
      for (let row = 0; row < rowCount; row += 1, from += featureCount) {
        const group = row >> 3;
        values[(group * columnCount + column) * pathCount + (row & 7)] = keyOfBits(rows[from] as number, missingKey);
      }
    }
  }

  #writePredictions(predictions: Float32Array, first: number, rowCount: number): void {
    const { precision, baseScores, outputCount } = this.#forest;
    const scores = this.#scores;
    for (let row = 0; row < rowCount; row += 1) {
      const sums = (row >> 3) * outputCount * pathCount + (row & 7);
      for (let output = 0; output < outputCount; output += 1) {
        const sum = this.#sums[sums + output * pathCount] as number;
        scores[output] = precision === "float64" ? sum + (baseScores[output] as number) : sum;
      }
      this.#finish(scores, predictions, (first + row) * this.#predictionColumns);
    }
  }
}
