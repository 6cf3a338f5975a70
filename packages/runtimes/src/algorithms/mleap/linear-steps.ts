import { invalidBundle } from "./bundle-files.ts";
import { classifierStep, highestClass, thresholdsOf } from "./classifier-step.ts";
import { dot, inputOf, type LeapStep, type StepFactory, outputOf, sized, type StepSource } from "./leap-step.ts";
import { asVector, doubleValue } from "./leap-values.ts";

export const linearRegression: StepFactory = (source) => {
  const { attributes } = source;
  const coefficients = attributes.vector("coefficients");
  const intercept = attributes.double("intercept");
  const features = inputOf(source, "features");
  const prediction = outputOf(source, "prediction");
  return (row) => {
    const values = sized(asVector(row.get(features)), coefficients.length);
    row.set(prediction, doubleValue(dot(values, coefficients) + intercept));
  };
};

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

export const logisticRegression: StepFactory = (source) =>
  source.attributes.integer("num_classes") > 2 ? multinomialRegression(source) : binaryRegression(source);

function binaryRegression(source: StepSource): LeapStep {
  const { attributes } = source;
  const coefficients = attributes.vector("coefficients");
  const intercept = attributes.double("intercept");
  const threshold = attributes.double("threshold", 0.5);
  const rawThreshold = Math.log(threshold / (1 - threshold));
  return classifierStep(source, {
    featureCount: coefficients.length,
    classCount: 2,
    raw: (features) => {
      const margin = dot(features, coefficients) + intercept;
      return Float64Array.of(-margin, margin);
    },
    probabilities: (raw) => raw.map(sigmoid),
    ofProbabilities: (probabilities) => ((probabilities[1] as number) > threshold ? 1 : 0),
    ofRaw: (raw) => ((raw[1] as number) > rawThreshold ? 1 : 0),
  });
}

/** Creates a multinomial logistic regression. Coefficients of one class are `classCount` apart, as MLeap's matrices are column-major. */
function multinomialRegression(source: StepSource): LeapStep {
  const { attributes } = source;
  const { dimensions, values: matrix } = attributes.tensor("coefficient_matrix");
  const intercepts = attributes.vector("intercept_vector");
  const [classCount = 0, featureCount = 0] = dimensions;
  if (dimensions.length !== 2 || intercepts.length !== classCount || classCount === 0) {
    throw invalidBundle(`has intercepts that do not fit its coefficients in '${source.folder.name}'`);
  }
  const thresholds = thresholdsOf(source, classCount);
  const ofProbabilities = highestClass(thresholds);
  return classifierStep(source, {
    featureCount,
    classCount,
    raw: (features) => {
      const margins = intercepts.slice();
      for (const [feature, value] of features.entries()) {
        for (let at = 0; at < classCount; at += 1) {
          margins[at] = (margins[at] as number) + value * (matrix[feature * classCount + at] as number);
        }
      }
      return margins;
    },
    probabilities: softmaxOf,
    ofProbabilities,
    ofRaw: thresholds === null ? highestClass(null) : (raw) => ofProbabilities(softmaxOf(raw)),
  });
}

function softmaxOf(margins: Float64Array): Float64Array {
  const highest = margins.reduce((most, value) => Math.max(most, value), -Infinity);
  if (highest === Infinity) return margins.map((_, at) => (at === margins.indexOf(Infinity) ? 1 : 0));
  const exponentials = margins.map((value) => Math.exp(highest > 0 ? value - highest : value));
  const sum = exponentials.reduce((total, value) => total + value, 0);
  return exponentials.map((value) => value * (1 / sum));
}

export const kMeans: StepFactory = (source) => {
  const { attributes } = source;
  const centres = attributes.tensors("cluster_centers").map(({ values }) => values);
  const size = attributes.integer("num_features", centres[0]?.length ?? 0);
  if (centres.length === 0 || centres.some(({ length }) => length !== size)) {
    throw invalidBundle(`has centres that are not vectors of ${size} in '${source.folder.name}'`);
  }
  const features = inputOf(source, "features");
  const prediction = outputOf(source, "prediction");
  return (row) => {
    const values = sized(asVector(row.get(features)), size);
    let best = 0;
    let least = Infinity;
    for (const [at, centre] of centres.entries()) {
      let distance = 0;
      for (let each = 0; each < size; each += 1) distance += ((values[each] as number) - (centre[each] as number)) ** 2;
      if (distance >= least) continue;
      least = distance;
      best = at;
    }
    row.set(prediction, { kind: "scalar", base: "int", value: best });
  };
};
