import { pythonFloat, pythonJsonFloat } from "../payloads/number-text.ts";
import type { RowPrediction } from "./tree-predictor.ts";

/** Values that SAGEMAKER_INFERENCE_OUTPUT may select, in the order of the response. */
const keys = [
  "predicted_label",
  "labels",
  "probability",
  "probabilities",
  "raw_score",
  "raw_scores",
  "predicted_score",
];

const classification = ["predicted_label", "labels", "raw_score", "raw_scores"];
const probabilities = [...classification, "probability", "probabilities"];
const objectives: ReadonlyMap<string, readonly string[]> = new Map([
  ...["reg:squarederror", "reg:logistic", "reg:gamma", "reg:absoluteerror", "reg:tweedie"].map(
    (name): [string, readonly string[]] => [name, ["predicted_score"]],
  ),
  ["binary:logistic", probabilities],
  ["binary:logitraw", classification],
  ["binary:hinge", classification],
  ["multi:softmax", classification],
  ["multi:softprob", probabilities],
]);

/** A value with its Python type, because Python prints an int without a decimal point. */
export interface SelectedValue {
  readonly numbers: readonly number[];
  readonly isList: boolean;
  readonly isInteger: boolean;
}

export type SelectedRow = ReadonlyMap<string, SelectedValue>;

/** Returns the selected values of each row. Throws RangeError for an objective that has no selectable values. */
export function selectedRows(
  predictions: readonly RowPrediction[],
  { selection, objective, classCount }: { selection: readonly string[]; objective: string; classCount: number },
): SelectedRow[] {
  const valid = objectives.get(objective);
  if (valid === undefined) {
    throw new RangeError(`Objective \`${objective}\` unsupported for selectable inference predictions.`);
  }
  const desired = keys.filter((key) => selection.includes(key) && valid.includes(key));
  const others = [...new Set(selection)].filter((key) => !desired.includes(key));
  return predictions.map(
    (prediction) =>
      new Map([
        ...desired.map((key): [string, SelectedValue] => [key, valueOf(key, { prediction, objective, classCount })]),
        ...others.map((key): [string, SelectedValue] => [key, single(NaN)]),
      ]),
  );
}

function single(number: number, isInteger = false): SelectedValue {
  return { numbers: [number], isList: false, isInteger };
}

function list(numbers: readonly number[], isInteger = false): SelectedValue {
  return { numbers, isList: true, isInteger };
}

interface Predicted {
  readonly prediction: RowPrediction;
  readonly objective: string;
  readonly classCount: number;
}

function valueOf(key: string, { prediction, objective, classCount }: Predicted): SelectedValue {
  const scores = typeof prediction === "number" ? [prediction] : prediction;
  const highest = scores.reduce((most, score) => Math.max(most, score), -Infinity);
  const [score = NaN] = scores;
  const isProbabilities = objective === "multi:softprob";
  switch (key) {
    case "predicted_label":
      if (objective === "binary:logistic") return single(score > 0.5 ? 1 : 0, true);
      if (objective === "binary:logitraw") return single(score > 0 ? 1 : 0, true);
      return isProbabilities ? single(scores.indexOf(highest), true) : single(score);
    case "labels":
      return list(objective.startsWith("binary:") ? [0, 1] : Array.from({ length: classCount }, (_, at) => at), true);
    case "probability":
    case "raw_score":
      return single(isProbabilities ? highest : score);
    case "probabilities":
    case "raw_scores":
      return list(isProbabilities ? scores : [1 - score, score]);
    default:
      return single(score);
  }
}

export function selectedJson(row: SelectedRow): string {
  const members = [...row].map(([key, { numbers, isList, isInteger }]) => {
    const texts = numbers.map((number) => (isInteger ? String(number) : pythonJsonFloat(number)));
    return `${JSON.stringify(key)}: ${isList ? `[${texts.join(", ")}]` : texts[0]}`;
  });
  return `{${members.join(", ")}}`;
}

/** Returns the values in the order of the selection. */
export function selectedCsv(row: SelectedRow, selection: readonly string[]): string {
  return selection
    .map((key) => {
      const { numbers, isList, isInteger } = row.get(key) as SelectedValue;
      const texts = numbers.map((number) => (isInteger ? String(number) : pythonFloat(number)));
      return isList ? `"[${texts.join(", ")}]"` : texts[0];
    })
    .join(",");
}
