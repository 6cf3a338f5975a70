import { unreachable } from "../../base/index.ts";
import type { Constant, OnnxModel, Operator } from "../onnx-file/index.ts";
import { ensembleAttributes } from "./ensemble-attributes.ts";
import type { Forest, Transform } from "./forest.ts";

/** What a model answers with, of its transformed scores. */
export type Answer =
  /** One number for each output of the forest. */
  | { readonly kind: "scores" }
  /** Of one probability two: of the negative class and of the positive. */
  | { readonly kind: "both-classes" }
  /** 1 where the score is above the threshold, else 0. */
  | { readonly kind: "above"; readonly threshold: number }
  /** The number of the output with the highest score. */
  | { readonly kind: "best-class" };

export const inputName = "input__0";
export const outputName = "output__0";
/** Rows are an open dimension, and as many go out as come in. */
const rows = "rows";

/** The ONNX model that computes the answer for rows of features. */
export function treeGraph(forest: Forest, answer: Answer): OnnxModel {
  const { attributes, baseScores } = ensembleAttributes(forest);
  const drawing = new Drawing();
  let value = drawing.apply("TreeEnsembleRegressor", [inputName], { domain: "ai.onnx.ml", attributes });
  if (baseScores.some((score) => score !== 0)) {
    value = drawing.apply("Add", [value, drawing.floats("base_scores", [baseScores.length], baseScores)]);
  }
  value = transformed(drawing, value, forest.transform);
  const columnCount = answerColumns(forest, answer);
  value = answered(drawing, value, answer);
  drawing.apply("Identity", [value], { output: outputName });
  return {
    graphName: "trees",
    inputs: [{ name: inputName, type: "FLOAT", dims: [rows, forest.featureCount] }],
    outputs: [{ name: outputName, type: "FLOAT", dims: [rows, columnCount] }],
    constants: drawing.constants,
    operators: drawing.operators,
    opsets: { "": 17, "ai.onnx.ml": 3 },
  };
}

export function answerColumns(forest: Pick<Forest, "outputCount">, { kind }: Answer): number {
  switch (kind) {
    case "scores":
      return forest.outputCount;
    case "both-classes":
      return 2;
    case "above":
    case "best-class":
      return 1;
    default:
      return unreachable(kind);
  }
}

/** Operators one behind the other. */
class Drawing {
  readonly constants: Constant[] = [];
  readonly operators: Operator[] = [];

  apply(
    operator: string,
    inputs: readonly string[],
    options: { domain?: string; attributes?: Operator["attributes"]; output?: string } = {},
  ): string {
    const output = options.output ?? `value_${this.operators.length}`;
    const { domain = "", attributes = {} } = options;
    this.operators.push({ operator, domain, inputs, outputs: [output], attributes });
    return output;
  }

  floats(name: string, dims: readonly number[], values: readonly number[]): string {
    this.constants.push({ name, type: "FLOAT", dims, bytes: new Uint8Array(Float32Array.from(values).buffer) });
    return name;
  }
}

function transformed(drawing: Drawing, value: string, transform: Transform): string {
  switch (transform.kind) {
    case "identity":
      return value;
    case "sigmoid": {
      const scaled =
        transform.alpha === 1 ? value : drawing.apply("Mul", [value, drawing.floats("alpha", [], [transform.alpha])]);
      return drawing.apply("Sigmoid", [scaled]);
    }
    case "softmax":
      return drawing.apply("Softmax", [value], { attributes: { axis: 1n } });
    case "exponential":
      return drawing.apply("Exp", [value]);
    case "softplus":
      return drawing.apply("Softplus", [value]);
    case "hinge":
      return isAbove(drawing, value, 0);
    case "signed-square":
      return drawing.apply("Mul", [value, drawing.apply("Abs", [value])]);
    case "exponential-ratio": {
      const exponent = drawing.apply("Mul", [value, drawing.floats("ratio", [], [-Math.LN2 / transform.ratio])]);
      return drawing.apply("Exp", [exponent]);
    }
    default:
      return unreachable(transform);
  }
}

function answered(drawing: Drawing, value: string, answer: Answer): string {
  switch (answer.kind) {
    case "scores":
      return value;
    case "both-classes": {
      const negative = drawing.apply("Sub", [drawing.floats("one", [], [1]), value]);
      return drawing.apply("Concat", [negative, value], { attributes: { axis: 1n } });
    }
    case "above":
      return isAbove(drawing, value, answer.threshold);
    case "best-class": {
      const best = drawing.apply("ArgMax", [value], { attributes: { axis: 1n, keepdims: 1n } });
      return drawing.apply("Cast", [best], { attributes: { to: floatType } });
    }
    default:
      return unreachable(answer);
  }
}

/** Of onnx.TensorProto.DataType. */
const floatType = 1n;

function isAbove(drawing: Drawing, value: string, threshold: number): string {
  const above = drawing.apply("Greater", [value, drawing.floats("threshold", [], [threshold])]);
  return drawing.apply("Cast", [above], { attributes: { to: floatType } });
}
