import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { isPickle, readPickledBooster, type TreePredictor, type XgboostServing } from "../algorithms/index.ts";
import { InferenceError } from "@galatea/base";
import { readXgboostScorer } from "../trees/index.ts";

const fileBytesMax = 500 * 2 ** 20;
const modelsMax = 100;
/**
 * Marker at the start of a Booster that XGBoost before 1.6 pickled: the marker, the length of the model, the model in the binary format,
 * and the configuration.
 */
const wrapping = "CONFIG-offset:";

/** Reads the models of an archive. Several files are an ensemble, unless SAGEMAKER_INFERENCE_ENSEMBLE disables ensembles. */
export function readXgboostServing(
  directory: string,
  settings: Readonly<Record<string, string>>,
): { readonly serving: XgboostServing; readonly memoryBytes: number; readonly discard: () => void } {
  const all = modelFiles(directory);
  if (all.length === 0) throw new InferenceError("INVALID_ARG", "the archive has no file that could be a model");
  if (all.length > modelsMax) throw new InferenceError("UNSUPPORTED", `the archive has more than ${modelsMax} models`);
  const isEnsemble = (settings.SAGEMAKER_INFERENCE_ENSEMBLE ?? "true") === "true";
  const read = (isEnsemble ? all : all.slice(0, 1)).map((name) => readModel(directory, name));
  const models = read.map(({ model }) => model);
  const [first] = models as [TreePredictor, ...TreePredictor[]];
  for (const { objective, featureCount, outputCount } of models) {
    if (objective === first.objective && featureCount === first.featureCount && outputCount === first.outputCount)
      continue;
    throw new InferenceError("UNSUPPORTED", "the models of the archive have different objectives, features or classes");
  }
  const selection = settings.SAGEMAKER_INFERENCE_OUTPUT;
  return {
    memoryBytes: read.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    discard: () => {
      for (const { discard } of read) discard();
    },
    serving: {
      models,
      isPickled: read[0]?.isPickled === true,
      selection: selection === undefined ? null : selection.replaceAll(" ", "").toLowerCase().split(","),
      isBatch: (settings.SAGEMAKER_BATCH ?? "") !== "",
      isOneOfMany: (settings.SAGEMAKER_MULTI_MODEL ?? "") !== "",
    },
  };
}

/** Ignores hidden files, as the container does. */
function modelFiles(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
    .map(({ name }) => name)
    .sort();
}

interface ReadBooster {
  readonly model: TreePredictor;
  readonly isPickled: boolean;
  readonly memoryBytes: number;
  readonly discard: () => void;
}

function readModel(directory: string, name: string): ReadBooster {
  try {
    const path = join(directory, name);
    if (statSync(path).size > fileBytesMax)
      throw new InferenceError("UNSUPPORTED", `it is larger than ${fileBytesMax} bytes`);
    const bytes = readFileSync(path);
    const pickled = isPickle(bytes) ? readPickledBooster(bytes) : null;
    const model = unwrapped(pickled?.model ?? bytes);
    const scorer = readXgboostScorer(model, typeOf(model), { treesMax: pickled?.bestTreeLimit ?? 0 });
    return {
      isPickled: pickled !== null,
      memoryBytes: scorer.memoryBytes,
      discard: scorer.discard,
      model: { ...scorer, predict: ({ values }) => scorer.score(values) },
    };
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    throw new InferenceError(code, `Model ${name} cannot be loaded: ${message}`, { cause: error });
  }
}

function unwrapped(bytes: Uint8Array): Uint8Array {
  const head = Buffer.from(bytes.subarray(0, wrapping.length)).toString("latin1");
  const start = wrapping.length + 8;
  if (head !== wrapping || bytes.length < start) return bytes;
  const byteLength = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(wrapping.length, true));
  if (!(byteLength <= bytes.length - start)) throw new InferenceError("INVALID_ARG", "the model ends too early");
  return bytes.subarray(start, start + byteLength);
}

/** Distinguishes JSON, which continues with a name or the end, from UBJSON, which continues with a type marker. */
function typeOf(bytes: Uint8Array): "xgboost" | "xgboost_json" | "xgboost_ubj" {
  const isObject = bytes[0] === 0x7b;
  if (!isObject) return "xgboost";
  return /^\{\s*["}]/.test(Buffer.from(bytes.subarray(0, 64)).toString("latin1")) ? "xgboost_json" : "xgboost_ubj";
}
