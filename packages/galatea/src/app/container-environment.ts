import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  ContainerRefusal,
  containerKinds,
  type ContainerKindName,
  type OpenedContainer,
} from "@galatea/runtimes/container-runtimes";
import { inferenceTypes, type ContainerLanguage, type InferenceType } from "@galatea/server/protocols";

/** What the contract's front end reads of the environment itself, whoever started the server and with what flags. */
export interface ContainerFrontEnd {
  /** The model of /invocations; a name that no model has when none was given, as Triton's. */
  readonly defaultModelName: string;
  readonly pingMode: "ready" | "live";
  readonly language: ContainerLanguage;
  /** The longest body of a call; null: as long as the server takes any. */
  readonly bodyBytesMax: number | null;
}

/** What the SAGEMAKER_* environment of a container asks of its server, as the entry point of an image of its kind reads it. */
export interface ContainerPlan extends ContainerFrontEnd {
  /** SAGEMAKER_MULTI_MODEL=true: nothing at start, archives by request. */
  readonly multiModel: boolean;
  readonly repositories: readonly string[];
  /** What archives are to a container of another kind than Triton's; null for Triton's own. */
  readonly opened: OpenedContainer | null;
  readonly loadModels: readonly string[];
  /** Lines for the log: what was accepted without effect, and hints. */
  readonly notes: readonly string[];
}

type Treatment = { readonly honoured: true } | { readonly accepted: string };

const noPool = "tensors live in a growing, sparse memory file; it needs no size";
const threads = "one event loop serves all connections";

/** Every variable of Triton's entry point, and what becomes of it here. */
export const containerVariables: Readonly<Record<string, Treatment>> = {
  SAGEMAKER_MULTI_MODEL: { honoured: true },
  SAGEMAKER_BIND_TO_PORT: { honoured: true },
  SAGEMAKER_SAFE_PORT_RANGE: { accepted: "the other listeners are off unless asked for" },
  SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: { honoured: true },
  SAGEMAKER_TRITON_PING_MODE: { honoured: true },
  SAGEMAKER_TRITON_OVERRIDE_PING_MODE: { honoured: true },
  SAGEMAKER_TRITON_LOG_VERBOSE: { honoured: true },
  SAGEMAKER_TRITON_ALLOW_METRICS: { honoured: true },
  SAGEMAKER_TRITON_METRICS_PORT: { honoured: true },
  SAGEMAKER_TRITON_LOG_INFO: { honoured: true },
  SAGEMAKER_TRITON_LOG_WARNING: { honoured: true },
  SAGEMAKER_TRITON_LOG_ERROR: { honoured: true },
  SAGEMAKER_TRITON_ALLOW_GRPC: { honoured: true },
  SAGEMAKER_TRITON_GRPC_PORT: { honoured: true },
  SAGEMAKER_TRITON_ADDITIONAL_ARGS: { honoured: true },
  SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE: { accepted: noPool },
  SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE: { accepted: noPool },
  SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT: { accepted: "tensors are views; nothing is gathered by threads" },
  SAGEMAKER_TRITON_THREAD_COUNT: { accepted: threads },
  SAGEMAKER_TRITON_TENSORFLOW_VERSION: { accepted: "one version of TensorFlow is served" },
  SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT: { accepted: "no model is placed on a GPU" },
  SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING: { accepted: "every archive has a namespace of its own" },
  SAGEMAKER_TRITON_INFERENCE_TYPE: { honoured: true },
};

type Environment = Readonly<Record<string, string | undefined>>;

const noDefaultModel = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";

/** Variables that are flags of `serve` under another name, those of Triton's `serve` entry point as it passes them on. */
const flagVariables: Readonly<Record<string, string>> = {
  SAGEMAKER_BIND_TO_PORT: "sagemaker-port",
  SAGEMAKER_TRITON_ALLOW_GRPC: "allow-grpc",
  SAGEMAKER_TRITON_GRPC_PORT: "grpc-port",
  SAGEMAKER_TRITON_ALLOW_METRICS: "allow-metrics",
  SAGEMAKER_TRITON_METRICS_PORT: "metrics-port",
  SAGEMAKER_TRITON_LOG_VERBOSE: "log-verbose",
  SAGEMAKER_TRITON_LOG_INFO: "log-info",
  SAGEMAKER_TRITON_LOG_WARNING: "log-warning",
  SAGEMAKER_TRITON_LOG_ERROR: "log-error",
  GALATEA_PYTHON_PACKAGES: "python-packages",
};

/** Triton's entry point serves the contract and nothing else, unless a variable asks for more. */
const containerFlags = ["--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"];

/**
 * The arguments that a container's environment adds to the command line of `serve`, later ones before earlier ones. What
 * SAGEMAKER_TRITON_ADDITIONAL_ARGS holds is split at white space, without quotes, as the shell of Triton's entry point does.
 */
export function containerArguments(env: Environment = process.env): readonly string[] {
  const own = Object.entries(flagVariables).flatMap(([name, flag]) => (env[name] ? [`--${flag}=${env[name]}`] : []));
  const additional = (env.SAGEMAKER_TRITON_ADDITIONAL_ARGS ?? "").split(/\s+/).filter((word) => word !== "");
  return [...containerFlags, "--model-control-mode=explicit", ...own, ...additional];
}

/** Reads the front end's settings where flags, and not the environment, said what to serve. */
export function containerFrontEnd(env: Environment): ContainerFrontEnd {
  return {
    defaultModelName: env.SAGEMAKER_TRITON_DEFAULT_MODEL_NAME ?? noDefaultModel,
    pingMode: checkedPingMode(env.SAGEMAKER_TRITON_PING_MODE) ?? "ready",
    language: { kind: "triton", inferenceType: checkedInferenceType(env) },
    bodyBytesMax: null,
  };
}

/** The kinds of containers by name. */
export const containerKindNames = ["tritonserver", ...(Object.keys(containerKinds) as ContainerKindName[])] as const;
export type ServedContainerKind = (typeof containerKindNames)[number];

/** Reads the plan of a container of any kind; `mlRoot` is the directory that /opt/ml means. Throws ContainerRefusal. */
export function containerPlan(kind: ServedContainerKind, env: Environment, mlRoot: string): ContainerPlan {
  return kind === "tritonserver" ? tritonPlan(env, mlRoot) : kindPlan(kind, env, mlRoot);
}

/** What the model of a container with one is called, where clients name none. */
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
      `${inferenceTypeName}=${inferenceType} has no effect: it is for /invocations, which a multi-model container has no model for`,
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

const inferenceTypeName = "SAGEMAKER_TRITON_INFERENCE_TYPE";

/** In the words of Triton's entry point. */
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
    if (!name.startsWith("SAGEMAKER_TRITON_") && !Object.hasOwn(containerVariables, name)) continue;
    const treatment = containerVariables[name];
    if (treatment === undefined) notes.push(`${name} is not known to this server and has no effect`);
    else if ("accepted" in treatment) notes.push(`${name} is accepted without effect: ${treatment.accepted}`);
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
      "ERROR: Incorrect directory structure: config.pbtxt lies at the root of the model archive. " +
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
      "ERROR: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided, and the archive holds no model directory: at its top there has to be one for " +
        "each model, as `tar czf model.tar.gz -C repository .` has it",
    );
  }
  if (directories.length > 1)
    throw new ContainerRefusal(
      `ERROR: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided, and the archive holds ${directories.length} model directories` +
        ` (${directories.map((each) => each.name).join(", ")})` +
        ": set it to the model, or the ensemble, that /invocations means.",
    );
  notes.push(`no SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided; using the only directory, '${only.name}'`);
  return { repositories: [repository], name: only.name };
}
