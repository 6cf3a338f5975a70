import { InferenceError } from "@galatea/base";
import { invalidBundle } from "./bundle-files.ts";
import { type Classifier, classifierStep, highestClass, shares, thresholdsOf } from "./classifier-step.ts";
import { type DecisionTree, leafOf, readDecisionTree } from "./decision-trees.ts";
import { dot, inputOf, type LeapStep, type StepFactory, outputOf, sized, type StepSource } from "./leap-step.ts";
import { asVector, doubleValue } from "./leap-values.ts";

interface TreeEnsemble {
  readonly trees: readonly DecisionTree[];
  readonly weights: Float64Array;
}

/** Reads the trees of an ensemble, each from its own subfolder. */
function ensembleOf({ attributes, folder }: StepSource): TreeEnsemble {
  const trees = attributes.texts("trees").map((name) => {
    const tree = folder.folder(name);
    const { operator } = tree.model();
    if (!operator.startsWith("decision_tree")) throw invalidBundle(`has a '${operator.slice(0, 100)}' among trees`);
    return readDecisionTree(tree);
  });
  const weights = attributes.doubles("tree_weights");
  if (trees.length === 0 || trees.length !== weights.length) {
    throw invalidBundle(`has ${trees.length} trees with ${weights.length} weights in '${folder.name}'`);
  }
  return { trees, weights };
}

function regressionStep(source: StepSource, predict: (features: Float64Array) => number): LeapStep {
  const features = inputOf(source, "features");
  const prediction = outputOf(source, "prediction");
  const size = source.attributes.integer("num_features", 0);
  return (row) => row.set(prediction, doubleValue(predict(sized(asVector(row.get(features)), size))));
}

export const decisionTreeRegression: StepFactory = (source) => {
  const tree = readDecisionTree(source.folder);
  return regressionStep(source, (features) => leafOf(tree, features)[0] as number);
};

/** Creates the step of a random forest regression: the mean of the trees, because MLeap ignores tree weights here. */
export const randomForestRegression: StepFactory = (source) => {
  const { trees } = ensembleOf(source);
  return regressionStep(
    source,
    (features) => trees.reduce((sum, tree) => sum + (leafOf(tree, features)[0] as number), 0) / trees.length,
  );
};

export const gbtRegression: StepFactory = (source) => {
  const ensemble = ensembleOf(source);
  return regressionStep(source, (features) => weightedSum(ensemble, features));
};

function weightedSum({ trees, weights }: TreeEnsemble, features: Float64Array): number {
  return dot(
    Float64Array.from(trees, (tree) => leafOf(tree, features)[0] as number),
    weights,
  );
}

function treeClassifier(source: StepSource, trees: readonly DecisionTree[]): Omit<Classifier, "raw"> {
  const classCount = source.attributes.integer("num_classes");
  if (classCount < 1 || trees.some(({ leafWidth }) => leafWidth !== classCount)) {
    throw invalidBundle(`has leaves without values for ${classCount} classes in '${source.folder.name}'`);
  }
  const thresholds = thresholdsOf(source, classCount);
  const ofProbabilities = highestClass(thresholds);
  return {
    featureCount: source.attributes.integer("num_features", 0),
    classCount,
    probabilities: shares,
    ofProbabilities,
    ofRaw: thresholds === null ? highestClass(null) : (raw) => ofProbabilities(shares(raw)),
  };
}

export const decisionTreeClassifier: StepFactory = (source) => {
  const tree = readDecisionTree(source.folder);
  return classifierStep(source, {
    ...treeClassifier(source, [tree]),
    raw: (features) => leafOf(tree, features).slice(),
  });
};

/**
 * Creates the step of a random forest classifier. Each tree has one vote, divided among the classes in proportion to
 * its leaf's values.
 */
export const randomForestClassifier: StepFactory = (source) => {
  const { trees } = ensembleOf(source);
  const classifier = treeClassifier(source, trees);
  const raw = (features: Float64Array): Float64Array => {
    const votes = new Float64Array(classifier.classCount);
    for (const tree of trees) {
      const counts = leafOf(tree, features);
      const total = counts.reduce((sum, count) => sum + count, 0);
      if (total === 0) continue;
      for (const [at, count] of counts.entries()) votes[at] = (votes[at] as number) + count / total;
    }
    return votes;
  };
  return classifierStep(source, { ...classifier, raw });
};

export const gbtClassifier: StepFactory = (source) => {
  const { attributes } = source;
  const classCount = attributes.integer("num_classes");
  if (classCount !== 2 || attributes.text("lossType", "logistic") !== "logistic") {
    throw new InferenceError("UNSUPPORTED", "MLeap only supports binary logistic regression");
  }
  const ensemble = ensembleOf(source);
  const thresholds = thresholdsOf(source, classCount);
  const probabilities = (raw: Float64Array): Float64Array => {
    const first = 1 / (1 + Math.exp(-2 * (raw[0] as number)));
    return Float64Array.of(first, 1 - first);
  };
  const ofProbabilities = highestClass(thresholds);
  return classifierStep(source, {
    featureCount: attributes.integer("num_features", 0),
    classCount,
    raw: (features) => {
      const sum = weightedSum(ensemble, features);
      return Float64Array.of(-sum, sum);
    },
    probabilities,
    ofProbabilities,
    ofRaw: thresholds === null ? highestClass(null) : (raw) => ofProbabilities(probabilities(raw)),
  });
};
