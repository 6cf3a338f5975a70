import { InferenceError } from "@galatea/base";
import type { FeatureRows } from "../payloads/algorithm-request.ts";
import { ZipArchive, ZipError } from "../../formats/index.ts";
import { applyOperator, asMatrix, type Matrix } from "./matrix-operators.ts";
import { readNdarrayFile } from "./ndarray-file.ts";
import { readSymbolGraph, type SymbolGraph } from "./symbol-graph.ts";

export type PredictorType = "regressor" | "binary_classifier" | "multiclass_classifier";

/** The prediction for an example. `scores` has one number, or one for each class of a multiclass model. */
export interface LinearPrediction {
  readonly scores: Float32Array;
  readonly label: number | null;
}

/** A model trained by SageMaker's linear learner. */
export class LinearModel {
  readonly predictor: PredictorType;
  readonly featureCount: number;
  readonly #graph: SymbolGraph;
  readonly #parameters: ReadonlyMap<string, Matrix>;
  /** The score above which a binary classifier predicts the positive class. */
  readonly #threshold: number;

  constructor(graph: SymbolGraph, parameters: ReadonlyMap<string, Matrix>, facts: AdditionalFacts) {
    this.#graph = graph;
    this.#parameters = parameters;
    this.#threshold = facts.threshold;
    this.featureCount = featuresOf(graph, parameters);
    // Evaluates one row, so that a graph whose matrices do not fit together fails at load and not at the first request.
    const { rowCount, columnCount } = this.#run({
      rowCount: 1,
      columnCount: this.featureCount,
      values: new Float32Array(this.featureCount),
    });
    if (rowCount !== 1 || columnCount < 1) throw brokenModel("has no score for a row");
    this.predictor = facts.predictor ?? predictorOf(graph, columnCount);
  }

  get memoryBytes(): number {
    let bytes = 0;
    for (const { values } of this.#parameters.values()) bytes += values.byteLength;
    return bytes;
  }

  /** Predicts rows. Throws RangeError if they do not have `featureCount` columns. */
  predict(rows: FeatureRows): LinearPrediction[] {
    if (rows.columnCount !== this.featureCount) {
      throw new RangeError(`the model has ${this.featureCount} features, the payload has ${rows.columnCount}`);
    }
    const { columnCount, values } = this.#run(rows);
    return Array.from({ length: rows.rowCount }, (_, row) => {
      const scores = values.subarray(row * columnCount, (row + 1) * columnCount);
      return { scores, label: this.#labelOf(scores) };
    });
  }

  #labelOf(scores: Float32Array): number | null {
    if (this.predictor === "regressor") return null;
    if (this.predictor === "binary_classifier") return (scores.at(-1) as number) > this.#threshold ? 1 : 0;
    let best = 0;
    for (const [index, score] of scores.entries()) if (score > (scores[best] as number)) best = index;
    return best;
  }

  #run(data: Matrix): Matrix {
    const { nodes, head } = this.#graph;
    const results: (Matrix | null)[] = [];
    for (const node of nodes.slice(0, head + 1)) {
      if (node.operator === "null") {
        results.push(node.name === "data" ? data : (this.#parameters.get(node.name) ?? null));
        continue;
      }
      // Inputs without a result are labels, which exist only in training.
      const inputs = node.inputs.map((input) => results[input] ?? null).filter((input) => input !== null);
      results.push(applyOperator(node.operator, inputs, node.attributes));
    }
    return results[head] as Matrix;
  }
}

/**
 * Reads the file `model_algo-1` of an archive of linear learner: a zip file with an MXNet symbol and its parameters. Throws
 * InferenceError for an invalid file.
 */
export function readLinearModel(bytes: Uint8Array): LinearModel {
  const { symbol, parameters: written, facts } = readFiles(bytes);
  const graph = readSymbolGraph(new TextDecoder().decode(symbol));
  const parameters = new Map<string, Matrix>();
  for (const [name, array] of readNdarrayFile(written)) {
    const plain = name.replace(/^(arg|aux):/, "");
    parameters.set(plain, asMatrix(array, plain));
  }
  return new LinearModel(graph, parameters, facts === null ? noFacts : readFacts(facts));
}

function readFiles(bytes: Uint8Array) {
  try {
    const archive = new ZipArchive(bytes);
    const symbolName = archive.names.find((name) => name.endsWith("-symbol.json"));
    const parameterName = archive.names.find((name) => name.endsWith(".params"));
    if (symbolName === undefined || parameterName === undefined)
      throw brokenModel("has no MXNet symbol and parameters");
    const factsName = "additional-params.json";
    const facts = archive.has(factsName) ? archive.read(factsName) : null;
    return { symbol: archive.read(symbolName), parameters: archive.read(parameterName), facts };
  } catch (error) {
    if (!(error instanceof ZipError)) throw error;
    throw new InferenceError(error.isUnsupported ? "UNSUPPORTED" : "INVALID_ARG", `the archive ${error.message}`, {
      cause: error,
    });
  }
}

interface AdditionalFacts {
  readonly predictor: PredictorType | null;
  readonly threshold: number;
}

const noFacts: AdditionalFacts = { predictor: null, threshold: 0.5 };
const predictors: readonly PredictorType[] = ["regressor", "binary_classifier", "multiclass_classifier"];

function readFacts(bytes: Uint8Array): AdditionalFacts {
  let document: unknown;
  try {
    document = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new InferenceError("INVALID_ARG", "the model's additional parameters are not valid JSON", { cause: error });
  }
  const members = new Map(Object.entries(typeof document === "object" && document !== null ? document : {}));
  const predictor = predictors.find((each) => each === members.get("predictor_type")) ?? null;
  const threshold = members.get("threshold");
  return { predictor, threshold: typeof threshold === "number" ? threshold : noFacts.threshold };
}

/** Returns the number of columns of the weights that multiply the data. */
function featuresOf({ nodes }: SymbolGraph, parameters: ReadonlyMap<string, Matrix>): number {
  for (const { operator, inputs } of nodes) {
    if (operator !== "FullyConnected" && operator !== "dot") continue;
    const weights = parameters.get(nodes[inputs[1] ?? -1]?.name ?? "");
    if (weights !== undefined) return operator === "dot" ? weights.rowCount : weights.columnCount;
  }
  throw brokenModel("has no weights");
}

/** Returns the type of the model, which follows from the operator that produces the scores. */
function predictorOf({ nodes, head }: SymbolGraph, columnCount: number): PredictorType {
  for (const { operator, attributes } of nodes.slice(0, head + 1).toReversed()) {
    if (/^(LogisticRegressionOutput|sigmoid)$/.test(operator)) return "binary_classifier";
    if (operator === "Activation" && attributes.get("act_type") === "sigmoid") return "binary_classifier";
    if (/softmax/i.test(operator)) return columnCount === 2 ? "binary_classifier" : "multiclass_classifier";
  }
  return columnCount === 1 ? "regressor" : "multiclass_classifier";
}

function brokenModel(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the linear learner's model ${what}`);
}
