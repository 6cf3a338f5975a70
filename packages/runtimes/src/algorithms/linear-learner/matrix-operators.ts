import { InferenceError } from "@galatea/base";
import { featureCellsMax } from "../payloads/algorithm-request.ts";
import type { NamedArray } from "./ndarray-file.ts";

export interface Matrix {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly values: Float32Array;
}

/** Maximum number of multiplications in one matrix product, which take about ten seconds. */
const multiplicationsMax = 2 ** 33;

type Operator = (inputs: readonly Matrix[], attributes: ReadonlyMap<string, string>, about: string) => Matrix;

/** MXNet's operators in linear models, by their names in symbols. Results are float32, as in MXNet. */
const operators: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ["FullyConnected", fullyConnected],
  ["dot", (inputs, _attributes, about) => product(input(inputs, 0, about), transposed(input(inputs, 1, about)), about)],
  ...["identity", "_copy", "BlockGrad", "MakeLoss", "make_loss", "Flatten", "flatten"].map(passing),
  ...["LinearRegressionOutput", "MAERegressionOutput", "SVMOutput"].map(passing),
  ["LogisticRegressionOutput", pointwise(sigmoid)],
  ["sigmoid", pointwise(sigmoid)],
  ["Activation", activation],
  ["SoftmaxOutput", softmax],
  ["Softmax", softmax],
  ["softmax", softmax],
  ["SoftmaxActivation", softmax],
  ...named(
    ["elemwise_add", "_plus", "_Plus", "broadcast_add", "broadcast_plus"],
    combined((a, b) => a + b),
  ),
  ...named(
    ["elemwise_sub", "_minus", "_Minus", "broadcast_sub", "broadcast_minus"],
    combined((a, b) => a - b),
  ),
  ...named(
    ["elemwise_mul", "_mul", "_Mul", "broadcast_mul"],
    combined((a, b) => a * b),
  ),
  ...named(
    ["elemwise_div", "_div", "_Div", "broadcast_div"],
    combined((a, b) => a / b),
  ),
  ...named(
    ["_plus_scalar", "_PlusScalar"],
    withScalar((a, b) => a + b),
  ),
  ...named(
    ["_minus_scalar", "_MinusScalar"],
    withScalar((a, b) => a - b),
  ),
  ...named(
    ["_mul_scalar", "_MulScalar"],
    withScalar((a, b) => a * b),
  ),
  ...named(
    ["_div_scalar", "_DivScalar"],
    withScalar((a, b) => a / b),
  ),
]);

/** Applies an MXNet operator. Throws InferenceError: UNSUPPORTED for an operator that is not implemented. */
export function applyOperator(
  operator: string,
  inputs: readonly Matrix[],
  attributes: ReadonlyMap<string, string>,
): Matrix {
  const apply = operators.get(operator);
  if (apply === undefined) {
    throw new InferenceError(
      "UNSUPPORTED",
      `the model's symbol has an operator '${operator}' that linear models do not have`,
    );
  }
  return apply(inputs, attributes, operator);
}

/** Converts a parameter to a matrix; an array of one dimension becomes one row. */
export function asMatrix({ shape, values }: NamedArray, name: string): Matrix {
  if (shape.length > 2)
    throw new InferenceError("UNSUPPORTED", `the parameter '${name}' has ${shape.length} dimensions`);
  const columnCount = shape.at(-1) ?? 1;
  return { rowCount: columnCount === 0 ? 0 : values.length / columnCount, columnCount, values };
}

function named(names: readonly string[], operator: Operator): [string, Operator][] {
  return names.map((name) => [name, operator]);
}

function passing(name: string): [string, Operator] {
  return [name, (inputs, _attributes, about) => input(inputs, 0, about)];
}

function input(inputs: readonly Matrix[], index: number, about: string): Matrix {
  const found = inputs[index];
  if (found === undefined)
    throw new InferenceError("INVALID_ARG", `the operator '${about}' of the model has no input ${index}`);
  return found;
}

function fullyConnected(inputs: readonly Matrix[], attributes: ReadonlyMap<string, string>, about: string): Matrix {
  const weighted = product(input(inputs, 0, about), input(inputs, 1, about), about);
  const noBias = /^(true|1)$/i.test(attributes.get("no_bias") ?? "false");
  return noBias ? weighted : combined((a, b) => a + b)([weighted, input(inputs, 2, about)], attributes, about);
}

/** Returns `left` times the transpose of `right`: each element is the dot product of a row of each. */
function product(left: Matrix, right: Matrix, about: string): Matrix {
  if (left.columnCount !== right.columnCount) {
    throw new InferenceError(
      "INVALID_ARG",
      `the operator '${about}' of the model takes ${right.columnCount} columns, not ${left.columnCount}`,
    );
  }
  const width = left.columnCount;
  const values = newCells(left.rowCount, right.rowCount);
  if (values.length * width > multiplicationsMax) throw new RangeError("there are too many rows for one request");
  for (let row = 0; row < left.rowCount; row += 1) {
    for (let column = 0; column < right.rowCount; column += 1) {
      let sum = 0;
      for (let at = 0; at < width; at += 1) {
        sum += (left.values[row * width + at] as number) * (right.values[column * width + at] as number);
      }
      values[row * right.rowCount + column] = sum;
    }
  }
  return { rowCount: left.rowCount, columnCount: right.rowCount, values };
}

function newCells(rowCount: number, columnCount: number): Float32Array {
  if (rowCount * columnCount > featureCellsMax) throw new RangeError("there are too many rows for one request");
  return new Float32Array(rowCount * columnCount);
}

function transposed({ rowCount, columnCount, values }: Matrix): Matrix {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rowCount; row += 1) {
    for (let column = 0; column < columnCount; column += 1) {
      turned[column * rowCount + row] = values[row * columnCount + column] as number;
    }
  }
  return { rowCount: columnCount, columnCount: rowCount, values: turned };
}

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

function pointwise(apply: (value: number) => number): Operator {
  return (inputs, _attributes, about) => {
    const matrix = input(inputs, 0, about);
    return { ...matrix, values: matrix.values.map(apply) };
  };
}

const activations: ReadonlyMap<string, (value: number) => number> = new Map([
  ["sigmoid", sigmoid],
  ["relu", (value) => Math.max(value, 0)],
  ["tanh", Math.tanh],
  ["softrelu", (value) => Math.log1p(Math.exp(value))],
]);

function activation(inputs: readonly Matrix[], attributes: ReadonlyMap<string, string>, about: string): Matrix {
  const type = attributes.get("act_type") ?? "";
  const apply = activations.get(type);
  if (apply === undefined) throw new InferenceError("UNSUPPORTED", `the model's symbol has an activation '${type}'`);
  return pointwise(apply)(inputs, attributes, about);
}

function softmax(inputs: readonly Matrix[], _attributes: ReadonlyMap<string, string>, about: string): Matrix {
  const { rowCount, columnCount, values } = input(inputs, 0, about);
  const scores = new Float32Array(values.length);
  for (let row = 0; row < rowCount; row += 1) {
    const from = values.subarray(row * columnCount, (row + 1) * columnCount);
    const highest = from.reduce((most, value) => Math.max(most, value), -Infinity);
    const exponentials = Float64Array.from(from, (value) => Math.exp(value - highest));
    const sum = exponentials.reduce((total, value) => total + value, 0);
    for (const [column, value] of exponentials.entries()) scores[row * columnCount + column] = value / sum;
  }
  return { rowCount, columnCount, values: scores };
}

/** Returns an element-wise operator; an operand with one row or one column is broadcast. */
function combined(combine: (left: number, right: number) => number): Operator {
  return (inputs, _attributes, about) => {
    const left = input(inputs, 0, about);
    const right = input(inputs, 1, about);
    const rowCount = Math.max(left.rowCount, right.rowCount);
    const columnCount = Math.max(left.columnCount, right.columnCount);
    for (const side of [left, right]) {
      const fits =
        (side.rowCount === rowCount || side.rowCount === 1) &&
        (side.columnCount === columnCount || side.columnCount === 1);
      if (!fits) {
        throw new InferenceError("INVALID_ARG", `the operator '${about}' of the model has inputs of different shapes`);
      }
    }
    const values = newCells(rowCount, columnCount);
    for (let row = 0; row < rowCount; row += 1) {
      for (let column = 0; column < columnCount; column += 1) {
        values[row * columnCount + column] = combine(cellOf(left, row, column), cellOf(right, row, column));
      }
    }
    return { rowCount, columnCount, values };
  };
}

function cellOf({ rowCount, columnCount, values }: Matrix, row: number, column: number): number {
  return values[(rowCount === 1 ? 0 : row) * columnCount + (columnCount === 1 ? 0 : column)] as number;
}

function withScalar(combine: (left: number, right: number) => number): Operator {
  return (inputs, attributes, about) => {
    const scalar = Number(attributes.get("scalar") ?? NaN);
    if (Number.isNaN(scalar))
      throw new InferenceError("INVALID_ARG", `the operator '${about}' of the model has no scalar`);
    return pointwise((value) => combine(value, scalar))(inputs, attributes, about);
  };
}
