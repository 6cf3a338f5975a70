import { InferenceError } from "@galatea/base";
import { BundleFolder } from "./bundle-files.ts";
import { bucketizer, oneHotEncoder, reverseStringIndexer, stringIndexer, vectorIndexer } from "./category-steps.ts";
import type { LeapStep, StepFactory } from "./leap-step.ts";
import { kMeans, linearRegression, logisticRegression } from "./linear-steps.ts";
import {
  countVectorizer,
  hashingTermFrequency,
  ngram,
  regexTokenizer,
  stopWordsRemover,
  tokenizer,
} from "./text-steps.ts";
import {
  decisionTreeClassifier,
  decisionTreeRegression,
  gbtClassifier,
  gbtRegression,
  randomForestClassifier,
  randomForestRegression,
} from "./tree-steps.ts";
import {
  binarizer,
  chiSqSelector,
  elementwiseProduct,
  idf,
  imputer,
  maxAbsScaler,
  minMaxScaler,
  normalizer,
  pca,
  standardScaler,
  vectorAssembler,
  vectorSlicer,
} from "./vector-steps.ts";

/** Factories of the implemented steps, by MLeap's operator name. */
const makers: ReadonlyMap<string, StepFactory> = new Map([
  ["pipeline", pipeline],
  ["string_indexer", stringIndexer],
  ["reverse_string_indexer", reverseStringIndexer],
  ["one_hot_encoder", oneHotEncoder],
  ["bucketizer", bucketizer],
  ["vector_indexer", vectorIndexer],
  ["vector_assembler", vectorAssembler],
  ["vector_slicer", vectorSlicer],
  ["chi_sq_selector", chiSqSelector],
  ["standard_scaler", standardScaler],
  ["min_max_scaler", minMaxScaler],
  ["max_abs_scaler", maxAbsScaler],
  ["elementwise_product", elementwiseProduct],
  ["normalizer", normalizer],
  ["pca", pca],
  ["binarizer", binarizer],
  // The name of the binarizer in bundles that MLeap exported from scikit-learn.
  ["sklearn_binarizer", binarizer],
  ["imputer", imputer],
  ["tokenizer", tokenizer],
  ["regex_tokenizer", regexTokenizer],
  ["stopwords_remover", stopWordsRemover],
  ["ngram", ngram],
  ["hashing_term_frequency", hashingTermFrequency],
  ["count_vectorizer", countVectorizer],
  ["idf", idf],
  ["linear_regression", linearRegression],
  ["logistic_regression", logisticRegression],
  ["k_means", kMeans],
  ["decision_tree_regression", decisionTreeRegression],
  ["decision_tree_classifier", decisionTreeClassifier],
  ["random_forest_regression", randomForestRegression],
  ["random_forest_classifier", randomForestClassifier],
  ["gbt_regression", gbtRegression],
  ["gbt_classifier", gbtClassifier],
]);

/** Reads the MLeap bundle in a directory; its format must be JSON. Throws InferenceError: UNSUPPORTED for an unknown transformer. */
export function readSparkModel(directory: string): LeapStep {
  return stepOf(BundleFolder.root(directory));
}

function stepOf(folder: BundleFolder): LeapStep {
  const { operator, attributes } = folder.model();
  const make = makers.get(operator);
  if (make === undefined) {
    throw new InferenceError(
      "UNSUPPORTED",
      `'${folder.name}' of the bundle is a '${operator.slice(0, 100)}', which is not supported; supported are: ${[...makers.keys()].join(", ")}`,
    );
  }
  return make({ attributes, folder, shape: folder.shape() });
}

function pipeline({ attributes, folder }: Parameters<StepFactory>[0]): LeapStep {
  const steps = attributes.texts("nodes").map((name) => stepOf(folder.folder(`${name}.node`)));
  return (row) => {
    for (const step of steps) step(row);
  };
}
