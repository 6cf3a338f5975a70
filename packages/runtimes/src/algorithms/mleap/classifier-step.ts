import { invalidBundle } from "./bundle-files.ts";
import { argmax, inputOf, type LeapStep, outputOf, sized, type StepSource } from "./leap-step.ts";
import { asVector, doubleValue, vectorValue } from "./leap-values.ts";

/** A classifier of MLeap: raw scores of a row's features, probabilities of them, and a class. */
export interface Classifier {
  readonly featureCount: number;
  readonly classCount: number;
  readonly raw: (features: Float64Array) => Float64Array;
  readonly probabilities: (raw: Float64Array) => Float64Array;
  readonly ofProbabilities: (probabilities: Float64Array) => number;
  /** Returns the class of a row whose probabilities are not requested. */
  readonly ofRaw: (raw: Float64Array) => number;
}

/** Creates the step of a classifier. Outputs that the node does not name are not computed. */
export function classifierStep(source: StepSource, classifier: Classifier): LeapStep {
  const features = inputOf(source, "features");
  const prediction = outputOf(source, "prediction");
  const rawColumn = source.shape.outputs.get("raw_prediction");
  const probabilityColumn = source.shape.outputs.get("probability");
  return (row) => {
    const raw = classifier.raw(sized(asVector(row.get(features)), classifier.featureCount));
    if (rawColumn !== undefined) row.set(rawColumn, vectorValue(raw));
    if (rawColumn !== undefined && probabilityColumn === undefined) {
      row.set(prediction, doubleValue(classifier.ofRaw(raw)));
      return;
    }
    const probabilities = classifier.probabilities(raw);
    if (probabilityColumn !== undefined) row.set(probabilityColumn, vectorValue(probabilities));
    row.set(prediction, doubleValue(classifier.ofProbabilities(probabilities)));
  };
}

/** Returns a function that selects the most probable class. With thresholds, each probability is first divided by its threshold. */
export function highestClass(thresholds: Float64Array | null): (probabilities: Float64Array) => number {
  if (thresholds === null) return argmax;
  return (probabilities) =>
    argmax(probabilities.map((value, at) => (thresholds[at] === 0 ? Infinity : value / (thresholds[at] as number))));
}

export function thresholdsOf({ attributes, folder }: StepSource, classCount: number): Float64Array | null {
  if (!attributes.has("thresholds")) return null;
  const thresholds = attributes.doubles("thresholds");
  if (thresholds.length !== classCount) {
    throw invalidBundle(`has ${thresholds.length} thresholds for ${classCount} classes in '${folder.name}'`);
  }
  return thresholds;
}

/** Returns the raw scores divided by their sum. */
export function shares(raw: Float64Array): Float64Array {
  const sum = raw.reduce((total, value) => total + value, 0);
  return sum === 0 ? raw : raw.map((value) => value / sum);
}
