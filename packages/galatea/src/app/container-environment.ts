import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  ContainerRefusal,
  containerKinds,
  type ContainerKindName,
  type OpenedContainer,
} from "@galatea/runtimes/container-runtimes";
import { flagVariables, type ServedContainerKind } from "../options/index.ts";
import { inferenceTypes, type ContainerFormat, type InferenceType } from "@galatea/server/protocols";

/** Settings of the container contract that the environment defines and no flag does. */
export interface ContainerFrontEnd {
  /** The model that /invocations runs. As in Triton, the default is a name that no model has. */
  readonly defaultModelName: string;
  readonly pingMode: "ready" | "live";
  readonly language: ContainerFormat;
  /** Maximum size of an invocation's body in bytes; null: the server's limit. */
  readonly bodyBytesMax: number | null;
}

/**
 * The settings that a container's SAGEMAKER_* variables define. They are read as the entry point of an image of the
 * same kind reads them.
 */
export interface ContainerPlan extends ContainerFrontEnd {
  /** True for SAGEMAKER_MULTI_MODEL=true: no models are loaded at the start, and archives are loaded on demand. */
  readonly multiModel: boolean;
  readonly repositories: readonly string[];
  /** The interpretation of archives by a container that is not Triton's; null for Triton. */
  readonly opened: OpenedContainer | null;
  readonly loadModels: readonly string[];
  /** Log lines with hints, and about settings that have no effect. */
  readonly notes: readonly string[];
}

const noPool = "tensors live in a growing, sparse memory file; it needs no size";
const threads = "one event loop serves all connections";

/** Variables of Triton's entry point that have no effect here, with the reason. */
const inertVariables: Readonly<Record<string, string>> = {
  SAGEMAKER_SAFE_PORT_RANGE: "the other listeners are off unless enabled",
  SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE: noPool,
  SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE: noPool,
  SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT: "tensors are views; nothing is gathered by threads",
  SAGEMAKER_TRITON_THREAD_COUNT: threads,
  SAGEMAKER_TRITON_TENSORFLOW_VERSION: "one version of TensorFlow is served",
  SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT: "no model is placed on a GPU",
  SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING: "every archive has its own namespace",
};

const inferenceTypeName = "SAGEMAKER_TRITON_INFERENCE_TYPE";

/** Variables of Triton's entry point that this module reads or that set a flag. */
const knownVariables: ReadonlySet<string> = new Set([
  "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME",
  "SAGEMAKER_TRITON_PING_MODE",
  "SAGEMAKER_TRITON_OVERRIDE_PING_MODE",
  "SAGEMAKER_TRITON_ADDITIONAL_ARGS",
  inferenceTypeName,
  ...flagVariables,
]);

type Environment = Readonly<Record<string, string | undefined>>;

const noDefaultModel = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";

/** Reads the contract's settings from the environment, for a server whose models are set by flags. */
export function containerFrontEnd(env: Environment): ContainerFrontEnd {
  return {
    defaultModelName: env.SAGEMAKER_TRITON_DEFAULT_MODEL_NAME ?? noDefaultModel,
    pingMode: checkedPingMode(env.SAGEMAKER_TRITON_PING_MODE) ?? "ready",
    language: { kind: "triton", inferenceType: checkedInferenceType(env) },
    bodyBytesMax: null,
  };
}

/**
 * Reads the settings of a container of any kind. `mlRoot` is the directory that is used as /opt/ml. Throws
 * ContainerRefusal.
 */
export function containerPlan(kind: ServedContainerKind, env: Environment, mlRoot: string): ContainerPlan {
  return kind === "tritonserver" ? tritonPlan(env, mlRoot) : kindPlan(kind, env, mlRoot);
}

/** Name of the model in a single-model container. */
const onlyModelName = "model";

function kindPlan(kind: ContainerKindName, environment: Environment, mlRoot: string): ContainerPlan {
  const multiModel = environment.SAGEMAKER_MULTI_MODEL === "true";
  const opened = containerKinds[kind].open({ environment, mlRoot, isMultiModel: multiModel });
  return {
    multiModel,
    repositories: [],
    opened,
    loadModels: multiModel ? [] : [onlyModelName],
    defaultModelName: onlyModelName,
    pingMode: multiModel ? "live" : "ready",
    language: { kind: "payload", codec: opened.codec },
    bodyBytesMax: opened.bodyBytesMax,
    notes: opened.notes,
  };
}

function tritonPlan(env: Environment, mlRoot: string): ContainerPlan {
  const notes = noteVariables(env);
  const multiModel = env.SAGEMAKER_MULTI_MODEL === "true";
  const ping = checkedPingMode(env.SAGEMAKER_TRITON_OVERRIDE_PING_MODE ?? env.SAGEMAKER_TRITON_PING_MODE);
  const inferenceType = checkedInferenceType(env);
  if (multiModel && inferenceType !== "infer")
    notes.push(
      `${inferenceTypeName}=${inferenceType} has no effect: it is for /invocations, and a multi-model container has no model for that path`,
    );
  const served = multiModel ? { repositories: [], name: "" } : singleModel(env, join(mlRoot, "model"), notes);
  return {
    multiModel,
    repositories: served.repositories,
    opened: null,
    loadModels: served.name === "" ? [] : [served.name],
    defaultModelName: served.name === "" ? noDefaultModel : served.name,
    pingMode: ping ?? (multiModel ? "live" : "ready"),
    language: { kind: "triton", inferenceType },
    bodyBytesMax: null,
    notes,
  };
}

function checkedPingMode(mode: string | undefined): "ready" | "live" | undefined {
  if (mode === undefined || mode === "ready" || mode === "live") return mode;
  throw new ContainerRefusal(`SAGEMAKER_TRITON_PING_MODE must be ready or live, got: ${mode}`);
}

/** Returns the inference type. For an invalid value, throws the error of Triton's entry point. */
function checkedInferenceType(env: Environment): InferenceType {
  const value = env[inferenceTypeName] || "infer";
  const type = inferenceTypes.find((each) => each === value);
  if (type !== undefined) return type;
  throw new ContainerRefusal(
    `ERROR: Invalid ${inferenceTypeName} '${value}'. Must be one of: ${inferenceTypes.join(", ")}`,
  );
}

function noteVariables(env: Environment): string[] {
  const notes: string[] = [];
  for (const name of Object.keys(env)) {
    const reason = inertVariables[name];
    if (reason !== undefined) notes.push(`${name} is accepted without effect: ${reason}`);
    else if (name.startsWith("SAGEMAKER_TRITON_") && !knownVariables.has(name))
      notes.push(`${name} is not known to this server and has no effect`);
  }
  return notes;
}

function singleModel(
  env: Environment,
  repository: string,
  notes: string[],
): { readonly repositories: readonly string[]; readonly name: string } {
  if (existsSync(join(repository, "config.pbtxt")))
    throw new ContainerRefusal(
      "ERROR: Incorrect directory structure: config.pbtxt is at the root of the model archive. " +
        "Model directory needs to contain the top level folder: <model>/config.pbtxt and <model>/<version>/.",
    );
  const named = env.SAGEMAKER_TRITON_DEFAULT_MODEL_NAME ?? "";
  if (named !== "") {
    if (!existsSync(join(repository, named)))
      throw new ContainerRefusal(
        `ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME ${named} does not exist in the model archive`,
      );
    return { repositories: [repository], name: named };
  }
  const directories = existsSync(repository)
    ? readdirSync(repository, { withFileTypes: true }).filter((each) => each.isDirectory())
    : [];
  const [only] = directories;
  if (only === undefined) {
    throw new ContainerRefusal(
      "ERROR: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided, and the archive contains no model directory: at its top there must be one for " +
        "each model, as `tar czf model.tar.gz -C repository .` has it",
    );
  }
  if (directories.length > 1)
    throw new ContainerRefusal(
      `ERROR: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided, and the archive holds ${directories.length} model directories` +
        ` (${directories.map((each) => each.name).join(", ")})` +
        ": set it to the model or ensemble that serves /invocations.",
    );
  notes.push(`no SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided; using the only directory, '${only.name}'`);
  return { repositories: [repository], name: only.name };
}
