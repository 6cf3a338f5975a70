import { InferenceError } from "@galatea/base";
import type { CompletionContext } from "./completion-context.ts";
import type { ModelConfigMessage } from "./message.ts";

interface BackendRow {
  readonly backend: string;
  /** The legacy platform name; "" when the backend has none. */
  readonly platform: string;
  /** Name of the file in the version directory that identifies the backend; it is also the default of default_model_filename. */
  readonly file: string;
}

/** The backends in Triton's order; the first matching row selects the backend. */
const backendRows: readonly BackendRow[] = [
  { backend: "tensorflow", platform: "tensorflow_savedmodel", file: "model.savedmodel" },
  { backend: "tensorflow", platform: "tensorflow_graphdef", file: "model.graphdef" },
  { backend: "tensorrt", platform: "tensorrt_plan", file: "model.plan" },
  { backend: "onnxruntime", platform: "onnxruntime_onnx", file: "model.onnx" },
  { backend: "openvino", platform: "", file: "model.xml" },
  { backend: "pytorch", platform: "pytorch_libtorch", file: "model.pt" },
  { backend: "pytorch", platform: "torch_aoti", file: "model.pt2" },
  { backend: "python", platform: "", file: "model.py" },
];

export const knownPlatforms: readonly string[] = [
  "ensemble",
  ...backendRows.map((row) => row.platform).filter((platform) => platform !== ""),
];

/** Backends that have a legacy platform name. */
export const platformBackends: ReadonlySet<string> = new Set(
  backendRows.filter((row) => row.platform !== "").map((row) => row.backend),
);

/** Returns the backend of a legacy platform name; undefined for "ensemble" and unknown names. */
export function backendOfPlatform(platform: string): string | undefined {
  return platform === "" ? undefined : backendRows.find((row) => row.platform === platform)?.backend;
}

/** Completes `backend`, `platform` and `default_model_filename` from each other and from the files of the model. */
export function completeBackend(message: ModelConfigMessage, context: CompletionContext): void {
  if (message.platform === "ensemble" || message.schedulingChoice.case === "ensembleScheduling") return;
  const row = rowFor(message, context.versionEntries);
  if (row !== undefined) {
    if (message.backend === "") message.backend = row.backend;
    if (message.platform === "" && message.backend === row.backend) message.platform = row.platform;
    if (message.defaultModelFilename === "") message.defaultModelFilename = row.file;
    return;
  }
  if (message.platform !== "" || message.backend !== "") return;
  const dot = message.name.lastIndexOf(".");
  if (dot === -1 || dot === message.name.length - 1) {
    throw new InferenceError(
      "INVALID_ARG",
      `Invalid model name: Could not determine backend for model '${message.name}' with no backend in model configuration. ` +
        "Expected model name of the form 'model.<backend_name>'.",
    );
  }
  message.backend = message.name.slice(dot + 1);
  if (message.defaultModelFilename === "") message.defaultModelFilename = `model.${message.backend}`;
}

function rowFor(message: ModelConfigMessage, entries: readonly string[]): BackendRow | undefined {
  const platformDecides = message.backend === "" || platformBackends.has(message.backend);
  if (message.platform !== "" && platformDecides) return backendRows.find((row) => row.platform === message.platform);
  const rows = message.backend === "" ? backendRows : backendRows.filter((row) => row.backend === message.backend);
  if (message.defaultModelFilename !== "") {
    return rows.find((row) => row.file === message.defaultModelFilename) ?? soleRow(message, rows);
  }
  return rows.find((row) => entries.includes(row.file)) ?? soleRow(message, rows);
}

/** Returns the only row of the named backend. A backend with two rows (pytorch, tensorflow) is identified by its files. */
function soleRow(message: ModelConfigMessage, rows: readonly BackendRow[]): BackendRow | undefined {
  return message.backend !== "" && rows.length === 1 ? rows[0] : undefined;
}
