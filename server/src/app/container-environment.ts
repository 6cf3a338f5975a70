import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** What the contract's front end reads of the environment itself, whoever started the server and with what flags. */
export interface ContainerFrontEnd {
  /** The model of /invocations; a name that no model has when none was given, as the original's. */
  readonly defaultModelName: string;
  readonly pingMode: "ready" | "live";
}

/** What the SAGEMAKER_* environment of a container asks of its server, as Triton's `serve` entry point reads it. */
export interface ContainerPlan extends ContainerFrontEnd {
  /** SAGEMAKER_MULTI_MODEL=true: nothing at start, archives by request. */
  readonly multiModel: boolean;
  readonly repositories: readonly string[];
  readonly loadModels: readonly string[];
  readonly bindPort: number | null;
  readonly logVerbose: boolean | null;
  readonly metricsPort: number | null;
  /** Lines for the log: what was accepted without effect, and hints. */
  readonly notes: readonly string[];
}

/** A container that cannot start; the message goes to stderr, exit code 1. */
export class ContainerRefusal extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ContainerRefusal";
  }
}

type Treatment =
  | { readonly honoured: true }
  | { readonly accepted: string }
  /** Refused when set to anything but `unless`. */
  | { readonly refused: string; readonly unless: readonly string[] };

const noPool = "tensors live in a growing, sparse memory file; it needs no size";
const threads = "one event loop serves all connections";

/** Every variable of the original's entry point, and what becomes of it here. */
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
  SAGEMAKER_TRITON_LOG_INFO: { accepted: "INFO lines are always written" },
  SAGEMAKER_TRITON_LOG_WARNING: { accepted: "WARNING lines are always written" },
  SAGEMAKER_TRITON_LOG_ERROR: { accepted: "ERROR lines are always written" },
  SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE: { accepted: noPool },
  SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE: { accepted: noPool },
  SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT: { accepted: "tensors are views; nothing is gathered by threads" },
  SAGEMAKER_TRITON_THREAD_COUNT: { accepted: threads },
  SAGEMAKER_TRITON_TENSORFLOW_VERSION: { accepted: "there is no TensorFlow backend to choose a version of" },
  SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT: { accepted: "no model is placed on a GPU" },
  SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING: { accepted: "every archive has a namespace of its own" },
  SAGEMAKER_TRITON_ALLOW_GRPC: { refused: "gRPC comes with a later release", unless: ["false", "0", ""] },
  SAGEMAKER_TRITON_GRPC_PORT: { refused: "gRPC comes with a later release", unless: [""] },
  SAGEMAKER_TRITON_INFERENCE_TYPE: {
    refused: "only `infer` is built; generate and generate_stream come with a later release",
    unless: ["infer", ""],
  },
  SAGEMAKER_TRITON_ADDITIONAL_ARGS: {
    refused: "arguments spliced into a command line are not taken from a container's environment",
    unless: [""],
  },
};

type Environment = Readonly<Record<string, string | undefined>>;

const noDefaultModel = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";

/** Reads the front end's settings where flags, and not the environment, said what to serve. */
export function containerFrontEnd(env: Environment): ContainerFrontEnd {
  checkRefused("SAGEMAKER_TRITON_INFERENCE_TYPE", env.SAGEMAKER_TRITON_INFERENCE_TYPE ?? "");
  return {
    defaultModelName: env.SAGEMAKER_TRITON_DEFAULT_MODEL_NAME ?? noDefaultModel,
    pingMode: checkedPingMode(env.SAGEMAKER_TRITON_PING_MODE) ?? "ready",
  };
}

/** Reads the plan; `mlRoot` is the directory that /opt/ml means. */
export function containerPlan(env: Environment, mlRoot: string): ContainerPlan {
  const notes = noteVariables(env);
  const multiModel = env.SAGEMAKER_MULTI_MODEL === "true";
  const ping = checkedPingMode(env.SAGEMAKER_TRITON_OVERRIDE_PING_MODE ?? env.SAGEMAKER_TRITON_PING_MODE);
  const served = multiModel ? { repositories: [], name: "" } : singleModel(env, join(mlRoot, "model"), notes);
  return {
    multiModel,
    repositories: served.repositories,
    loadModels: served.name === "" ? [] : [served.name],
    defaultModelName: served.name === "" ? noDefaultModel : served.name,
    pingMode: ping ?? (multiModel ? "live" : "ready"),
    bindPort: port(env, "SAGEMAKER_BIND_TO_PORT"),
    logVerbose: env.SAGEMAKER_TRITON_LOG_VERBOSE === undefined ? null : env.SAGEMAKER_TRITON_LOG_VERBOSE === "true",
    metricsPort:
      env.SAGEMAKER_TRITON_ALLOW_METRICS === "true" ? (port(env, "SAGEMAKER_TRITON_METRICS_PORT") ?? 8002) : null,
    notes,
  };
}

function checkedPingMode(mode: string | undefined): "ready" | "live" | undefined {
  if (mode === undefined || mode === "ready" || mode === "live") return mode;
  throw new ContainerRefusal(`SAGEMAKER_TRITON_PING_MODE must be ready or live, got: ${mode}`);
}

function checkRefused(name: string, value: string): void {
  const treatment = containerVariables[name];
  if (treatment === undefined || !("refused" in treatment) || treatment.unless.includes(value)) return;
  throw new ContainerRefusal(`${name}=${value} is not supported: ${treatment.refused}`);
}

function noteVariables(env: Environment): string[] {
  const notes: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("SAGEMAKER_TRITON_") && !Object.hasOwn(containerVariables, name)) continue;
    const treatment = containerVariables[name];
    if (treatment === undefined) notes.push(`${name} is not known to this server and has no effect`);
    else if ("accepted" in treatment) notes.push(`${name} is accepted without effect: ${treatment.accepted}`);
    else checkRefused(name, value ?? "");
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
  if (only === undefined || directories.length > 1)
    throw new ContainerRefusal(
      `ERROR: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided, and the archive holds ${directories.length} model directories` +
        (only === undefined ? "" : ` (${directories.map((each) => each.name).join(", ")})`) +
        ": set it to the model, or the ensemble, that /invocations means.",
    );
  notes.push(`no SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided; using the only directory, '${only.name}'`);
  return { repositories: [repository], name: only.name };
}

function port(env: Environment, name: string): number | null {
  const text = env[name];
  if (text === undefined || text === "") return null;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 65535)
    throw new ContainerRefusal(`${name} must be a port, got: ${text}`);
  return number;
}
