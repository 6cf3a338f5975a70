import { availableParallelism } from "node:os";
import type { KindStart } from "../container-kind.ts";
import { integerVariable, notesOn } from "../integer-variable.ts";

/** Settings from environment variables of SageMaker's inference toolkit and of its model servers. */
export interface ScriptSettings {
  /** Number of processes for each model. */
  readonly workerCount: number;
  /** Maximum number of requests in a batch; 1 disables batching. */
  readonly batchSizeMax: number;
  readonly batchDelayUs: number;
  /** Time limit of a call of the script, in milliseconds, after which its process is killed; null: the time limit of the invocation. */
  readonly callMsMax: number | null;
  /** Maximum length of a request body, in bytes; null: the server's limit. */
  readonly bodyBytesMax: number | null;
  readonly notes: readonly string[];
}

const workersMax = 256;
const batchSizeLimit = 1024;
const secondsMax = 3600;
const delayMsMax = 60_000;
const payloadMegabytesMax = 2047;

const jvm = "there is no Java process";
const location = "the platform determines the directory of models, and passes it to each script";
/** Variables that are accepted without effect, with the reason for the log. */
const withoutEffect: Readonly<Record<string, string>> = {
  SAGEMAKER_MODEL_SERVER_VMARGS: jvm,
  SAGEMAKER_MAX_HEAP_SIZE: jvm,
  SAGEMAKER_MAX_DIRECT_MEMORY_SIZE: jvm,
  SAGEMAKER_USE_NGINX: "there is no proxy in front of the models",
  SAGEMAKER_TS_MIN_WORKERS: "a model always has its maximum number of workers",
  SAGEMAKER_STARTUP_TIMEOUT:
    "no second process is started; the endpoint's configuration has the timeout of a model's load",
  SAGEMAKER_SAFE_PORT_RANGE: "no other port is opened",
  SAGEMAKER_BASE_DIR: location,
  SAGEMAKER_CONTAINER_LOG_LEVEL: "the level of the server's log is set separately; scripts see the variable",
  SAGEMAKER_MODEL_JOB_QUEUE_SIZE: "the server limits the requests that wait for a model",
  CA_REPOSITORY_ARN: "packages come from the package index of the operator's installer",
};

/** Reads the settings. Throws ContainerRefusal for an invalid value. */
export function scriptSettings({ environment, isMultiModel }: KindStart): ScriptSettings {
  const read = (names: readonly string[], most: number) => integerVariable(environment, names, { least: 1, most });
  const workers = read(["SAGEMAKER_MODEL_SERVER_WORKERS", "SAGEMAKER_TS_MAX_WORKERS"], workersMax);
  const ofModels = read(["SAGEMAKER_NUM_MODEL_WORKERS"], workersMax);
  const seconds = read(
    ["SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS", "SAGEMAKER_MODEL_SERVER_TIMEOUT", "SAGEMAKER_TS_RESPONSE_TIMEOUT"],
    secondsMax,
  );
  const megabytes = read(["SAGEMAKER_MAX_PAYLOAD_IN_MB"], payloadMegabytesMax);
  return {
    // One process per processor, as in SageMaker's scikit-learn container; in multi-model mode one process per model.
    workerCount: (isMultiModel ? (ofModels ?? workers) : workers) ?? (isMultiModel ? 1 : availableParallelism()),
    batchSizeMax: read(["SAGEMAKER_TS_BATCH_SIZE"], batchSizeLimit) ?? 1,
    batchDelayUs: 1000 * (read(["SAGEMAKER_TS_MAX_BATCH_DELAY"], delayMsMax) ?? 100),
    callMsMax: seconds === null ? null : 1000 * seconds,
    bodyBytesMax: megabytes === null ? null : megabytes * 2 ** 20,
    notes: notesOn(environment, withoutEffect),
  };
}
