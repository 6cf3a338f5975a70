import { availableParallelism } from "node:os";
import { ContainerRefusal, type KindStart } from "../container-kind.ts";
import { integerVariable, notesOn } from "../integer-variable.ts";

/** Settings from environment variables of SageMaker's TensorFlow Serving container. */
export interface ServingSettings {
  /** Number of processes for each archive; each process loads all models of the archive. */
  readonly instanceCount: number;
  /** Null if batching is disabled. */
  readonly batching: ServingBatching | null;
  /** Numbers of threads of a process, within an operator and between operators; 0: TensorFlow's default. */
  readonly intraThreads: number;
  readonly interThreads: number;
  /** Name of the model for requests that do not select one; "": the first model of the archive. */
  readonly defaultModel: string;
  /** Time limit of a request, in milliseconds, after which its process is killed; null: the time limit of the invocation. */
  readonly callMsMax: number | null;
  /** Value of `Context.timeout` for a script, in seconds. */
  readonly waitSeconds: number;
  readonly notes: readonly string[];
}

export interface ServingBatching {
  /** Maximum number of rows in a batch. */
  readonly rowsMax: number;
  readonly delayUs: number;
  /** Maximum number of waiting requests. */
  readonly queuedMax: number;
}

const instancesMax = 64;
const rowsLimit = 65_536;
const delayUsLimit = 60_000_000;
const secondsLimit = 3600;
const threadsLimit = 1024;
const integerLimit = 999_999_999;
/** Upper limit of `queuedMax`, regardless of the settings. */
const queuedLimit = 100_000;

const noGpu = "models run on the CPU";
const noProxy = "there is no nginx and no gunicorn in front of the models";
const withoutEffect: Readonly<Record<string, string>> = {
  SAGEMAKER_TFS_NUM_BATCH_THREADS:
    "a process runs one batch at a time; SAGEMAKER_TFS_INSTANCE_COUNT is the number of processes",
  SAGEMAKER_TFS_FRACTIONAL_GPU_MEM_MARGIN: noGpu,
  SAGEMAKER_TFS_VERSION: "there is one version of TensorFlow",
  SAGEMAKER_TFS_NGINX_LOGLEVEL: noProxy,
  SAGEMAKER_GUNICORN_LOGLEVEL: noProxy,
  SAGEMAKER_GUNICORN_THREADS: noProxy,
  SAGEMAKER_GUNICORN_WORKER_CLASS: noProxy,
  SAGEMAKER_SAFE_PORT_RANGE: "models use no ports",
};

const universalScript = ["SAGEMAKER_MULTI_MODEL_UNIVERSAL_BUCKET", "SAGEMAKER_MULTI_MODEL_UNIVERSAL_PREFIX"];

/** Reads the settings. Throws ContainerRefusal for an invalid value. */
export function servingSettings({ environment }: KindStart): ServingSettings {
  const read = (name: string, least: number, most: number) => integerVariable(environment, [name], { least, most });
  const universal = universalScript.find((name) => (environment[name] ?? "") !== "");
  if (universal !== undefined)
    throw new ContainerRefusal(
      `ERROR: ${universal}: one script for all archives is not loaded from S3 here; put code/inference.py into each archive`,
    );
  const instances = read("SAGEMAKER_TFS_INSTANCE_COUNT", 1, instancesMax) ?? 1;
  // In SageMaker's container, Gunicorn's processes run the script and TensorFlow Serving's run the models. Here each process does both.
  const scripts = read("SAGEMAKER_GUNICORN_WORKERS", 1, instancesMax) ?? 1;
  const proxySeconds = read("SAGEMAKER_NGINX_PROXY_READ_TIMEOUT_SECONDS", 1, secondsLimit);
  const scriptSeconds = read("SAGEMAKER_GUNICORN_TIMEOUT_SECONDS", 1, secondsLimit);
  const isTimed = proxySeconds !== null || scriptSeconds !== null;
  return {
    instanceCount: Math.max(instances, scripts),
    batching: batchingOf(environment.SAGEMAKER_TFS_ENABLE_BATCHING ?? "false", read, "SAGEMAKER_BATCH" in environment),
    intraThreads: read("SAGEMAKER_TFS_INTRA_OP_PARALLELISM", 0, threadsLimit) ?? 0,
    interThreads: read("SAGEMAKER_TFS_INTER_OP_PARALLELISM", 0, threadsLimit) ?? 0,
    defaultModel: environment.SAGEMAKER_TFS_DEFAULT_MODEL_NAME ?? "",
    callMsMax: isTimed ? 1000 * Math.max(proxySeconds ?? 60, scriptSeconds ?? 30) : null,
    waitSeconds: read("SAGEMAKER_TFS_WAIT_TIME_SECONDS", 1, secondsLimit) ?? 60,
    notes: notesOn(environment, withoutEffect),
  };
}

type ReadInteger = (name: string, least: number, most: number) => number | null;

function batchingOf(enabled: string, read: ReadInteger, isTransform: boolean): ServingBatching | null {
  const isEnabled = enabled.toLowerCase();
  if (isEnabled !== "true" && isEnabled !== "false")
    throw new ContainerRefusal("ERROR: SAGEMAKER_TFS_ENABLE_BATCHING must be 'true' or 'false'");
  const rowsMax = read("SAGEMAKER_TFS_MAX_BATCH_SIZE", 1, rowsLimit) ?? 8;
  const delayUs = read("SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS", 0, delayUsLimit) ?? 1000;
  const batches = read("SAGEMAKER_TFS_MAX_ENQUEUED_BATCHES", 1, integerLimit);
  // A transform job limits the number of its concurrent requests itself.
  const queuedBatches = batches ?? (isTransform ? queuedLimit : availableParallelism());
  return isEnabled === "false" ? null : { rowsMax, delayUs, queuedMax: Math.min(queuedBatches * rowsMax, queuedLimit) };
}
