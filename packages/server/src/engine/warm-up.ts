import { InferenceError, type Clock, type Logger } from "@galatea/base";
import type { LoadedModel, ModelSource } from "../backends/index.ts";
import {
  newRecord,
  releaseResponse,
  DeferredResponses,
  newInferenceRequest,
  type Execution,
  type InferenceRequest,
  type Instance,
  type RequestRecord,
  type Outcome,
} from "../inference/index.ts";
import type { ModelConfig, WarmUpSample } from "../modelconfig/index.ts";
import { releaseTensors, type Arena, type Tensor } from "../tensor/index.ts";
import { checkRequest } from "./check-request.ts";
import { modelFacts, reshapedInputs } from "./model-facts.ts";
import { warmUpTensor } from "./warm-up-data.ts";

export interface WarmUpOptions {
  readonly namespace: string;
  readonly arena: Arena;
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly fillRandom: (bytes: Uint8Array) => void;
  readonly signal: AbortSignal;
}

/** A warm-up sample with its tensors, which all requests of the sample share. */
interface PreparedSample {
  readonly sample: WarmUpSample;
  readonly request: InferenceRequest;
}

/** Maximum number of warm-up requests of one version, over all samples and instances. */
const requestsMax = 100_000;

/** Time for an abandoned execution to end by itself before the model is ended by force. */
const abandonedMsMax = 5000;

/**
 * Runs the samples of `model_warmup` on every instance, before the model receives requests. As in Triton, a sample of batch size n is n
 * requests of one row in one execution, repeated `count` times, without queue and batcher; a sample of batch size 0 is omitted. Returns the
 * records of the requests, because they count in the model's statistics. Throws INVALID_ARG with Triton's texts when a sample does not fit
 * the model or fails.
 */
export async function warmUp(model: LoadedModel, order: WarmUpOptions): Promise<readonly RequestRecord[]> {
  const samples = executedSamples(order.config);
  checkSizes(samples, model.instances, order.config);
  const prepared: PreparedSample[] = [];
  try {
    for (const sample of samples) prepared.push(await prepare(sample, order));
    const runs = await Promise.allSettled(model.instances.map((instance) => warmInstance(instance, prepared, order)));
    const failure = runs.find((run) => run.status === "rejected");
    if (failure !== undefined) throw failure.reason;
    return runs.flatMap((run) => (run.status === "fulfilled" ? run.value : []));
  } finally {
    for (const { request } of prepared) releaseTensors(request.inputs);
  }
}

/**
 * Returns the errors that `warmUp` finds before it executes any sample, at most one for each sample. When `instances` is null, sizes are
 * not checked: a load may still complete the batch size.
 */
export async function checkWarmUps(
  order: WarmUpOptions,
  instances: readonly NamedInstance[] | null,
): Promise<readonly InferenceError[]> {
  const samples = executedSamples(order.config);
  const errors: InferenceError[] = [];
  const checks: (() => void | Promise<void>)[] = samples.map((sample) => async () => {
    const { request } = await prepare(sample, order);
    releaseTensors(request.inputs);
  });
  if (instances !== null) checks.push(() => checkSizes(samples, instances, order.config));
  for (const check of checks) {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      errors.push(error);
    }
  }
  return errors;
}

const executedSamples = ({ warmUps }: ModelConfig) => warmUps.filter(({ batchSize }) => batchSize > 0);

type NamedInstance = Pick<Instance, "name">;

function checkSizes(samples: readonly WarmUpSample[], instances: readonly NamedInstance[], config: ModelConfig): void {
  let requests = 0;
  for (const { name, batchSize, count } of samples) {
    requests += batchSize * count * instances.length;
    if (batchSize <= Math.max(config.maxBatchSize, 1)) continue;
    const why = `batch size ${batchSize} for '${instances[0]?.name ?? config.name}', max allowed is ${config.maxBatchSize}`;
    throw sampleFailed(name, [why]);
  }
  if (requests <= requestsMax) return;
  throw new InferenceError(
    "INVALID_ARG",
    `model_warmup of '${config.name}' has ${requests} requests, max allowed is ${requestsMax}`,
  );
}

async function prepare(sample: WarmUpSample, order: WarmUpOptions): Promise<PreparedSample> {
  const { config, source } = order;
  const facts = modelFacts(config);
  const inputs: Tensor[] = [];
  try {
    for (const input of sample.inputs) {
      if (facts.inputByName.has(input.name)) inputs.push(await warmUpTensor(input, order));
      else order.log.warning(`model '${config.name}' has no input '${input.name}' of warmup sample '${sample.name}'`);
    }
    const request = newInferenceRequest({
      namespace: order.namespace,
      modelName: source.servedName,
      modelVersion: String(source.version),
      inputs,
      receivedNs: order.clock.monotonicNs(),
    });
    checkRequest(request, facts);
    return { sample, request: { ...request, inputs: reshapedInputs(inputs, facts) } };
  } catch (error) {
    releaseTensors(inputs);
    throw error;
  }
}

/** An execution whose requests have completed, with the error of the first one that failed. */
interface WarmUpExecution extends Execution {
  readonly failures: readonly InferenceError[];
}

async function warmInstance(
  instance: Instance,
  prepared: readonly PreparedSample[],
  order: WarmUpOptions,
): Promise<RequestRecord[]> {
  const records: RequestRecord[] = [];
  for (const { sample, request } of prepared) {
    for (let tick = 0; tick < sample.count; tick++) {
      order.signal.throwIfAborted();
      const startedNs = order.clock.monotonicNs();
      const batch = Array.from({ length: sample.batchSize }, () => ({ ...request }));
      const execution = await endOrAbort(instance, batch, order);
      const { failures } = execution;
      if (failures.length > 0) {
        throw sampleFailed(
          sample.name,
          failures.map((error) => error.message),
        );
      }
      records.push(...recordsOf(execution, startedNs));
    }
  }
  return records;
}

/**
 * Waits for the execution. When the load is aborted, abandons the execution and waits for a short time, because a running instance must not
 * be closed.
 */
async function endOrAbort(
  instance: Instance,
  batch: readonly InferenceRequest[],
  { signal, clock }: WarmUpOptions,
): Promise<WarmUpExecution> {
  const execution = executeOnce(instance, batch);
  const { promise: late, reject } = Promise.withResolvers<never>();
  let timer: Disposable | null = null;
  const giveUp = () => {
    for (const request of batch) instance.abandonRequest(request);
    timer = clock.timer(abandonedMsMax, () => reject(signal.reason));
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const done = await Promise.race([execution, late]);
    signal.throwIfAborted();
    return done;
  } finally {
    signal.removeEventListener("abort", giveUp);
    (timer as Disposable | null)?.[Symbol.dispose]();
  }
}

/** Executes the requests once and ignores their responses. The requests share the tensors. */
async function executeOnce(instance: Instance, batch: readonly InferenceRequest[]): Promise<WarmUpExecution> {
  for (const { inputs } of batch) for (const { block } of inputs) block?.retain();
  try {
    const execution = await instance.execute(batch);
    const outcomes = await Promise.all(execution.outcomes.map(ended));
    for (const outcome of outcomes)
      if (!(outcome instanceof InferenceError) && outcome !== null) releaseResponse(outcome);
    const failures = outcomes.filter((outcome) => outcome instanceof InferenceError);
    return { ...execution, failures };
  } finally {
    for (const { inputs } of batch) releaseTensors(inputs);
  }
}

/** Returns the final outcome of a request; null when all its responses went to a sink without an error. */
async function ended(outcome: Outcome | DeferredResponses): Promise<Outcome | null> {
  return outcome instanceof DeferredResponses ? await outcome.ended : outcome;
}

function recordsOf(execution: Execution, startedNs: number): RequestRecord[] {
  return execution.outcomes.map((_, position) => ({
    ...newRecord(startedNs, 1),
    queuedNs: startedNs,
    startedNs,
    computeInputNs: execution.computeInputNs,
    computeInferNs: execution.computeInferNs,
    computeOutputNs: execution.computeOutputNs,
    executedBatchSize: execution.outcomes.length,
    countsExecution: position === 0,
  }));
}

function sampleFailed(name: string, reasons: readonly string[]): InferenceError {
  const list = reasons.map((reason) => `${reason}; `).join("");
  return new InferenceError("INVALID_ARG", `failed to run warmup sample '${name}': ${list}`);
}
