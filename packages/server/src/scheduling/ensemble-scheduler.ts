import { assert, type InferenceError } from "@galatea/base";
import type { InferenceRequest, RequestRecord } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import { Drain } from "./drain.ts";
import { ensembleGraph, selectEnsembleSteps, type EnsemblePlan } from "./ensemble-graph.ts";
import { EnsembleRun, type EnsembleSharedState } from "./ensemble-run.ts";
import type { EnsembleOptions, StepModels } from "./options.ts";
import { queueFullError, requestCancelled, schedulerStoppingError } from "./refusals.ts";
import type { Scheduler, SchedulerResult } from "./scheduler.ts";
import { StepGates } from "./step-gate.ts";

/**
 * Maximum number of cached plans, one for each selection of outputs. When the cache is full, the plan of a new selection is built for each
 * request.
 */
const plansMax = 64;

/**
 * Creates a scheduler that runs an ensemble. A step starts as soon as the steps that produce its inputs have ended, and tensors are passed
 * by reference. Steps that produce only unrequested outputs do not run (Triton 2.51 fails such requests with its deadlock text).
 *
 * `record.startedNs - record.queuedNs` is the sum of the successful steps' times in queues. The compute durations are sums over the steps,
 * too, and can exceed the wall time when branches overlap.
 *
 * Steps that read from a decoupled step run once for each of its responses. Each result is a response of the ensemble; results are sent in
 * the order in which they are produced. A step's response is acknowledged after all results of it were consumed. A slow client therefore
 * slows down all steps.
 */
export function createEnsembleScheduler(
  config: ModelConfig,
  stepConfigs: readonly ModelConfig[],
  models: StepModels,
  options: EnsembleOptions,
): Scheduler {
  return new EnsembleScheduler(config, stepConfigs, models, options);
}

class EnsembleScheduler implements Scheduler {
  readonly #options: EnsembleOptions;
  readonly #shared: EnsembleSharedState;
  readonly #planForAll: EnsemblePlan;
  readonly #plans = new Map<string, EnsemblePlan>();
  readonly #drain = new Drain();
  readonly #active = new Set<EnsembleRun>();
  #isAbandoned = false;

  constructor(config: ModelConfig, stepConfigs: readonly ModelConfig[], models: StepModels, options: EnsembleOptions) {
    assert(config.scheduling.kind === "ensemble", `model '${config.name}' is not an ensemble`);
    const graph = ensembleGraph(config, stepConfigs);
    this.#options = options;
    this.#planForAll = selectEnsembleSteps(graph, null);
    this.#shared = {
      graph,
      gates: new StepGates(graph.steps.length, config.scheduling.inflightRequestsMax),
      models,
      modelVersion: options.modelVersion,
      clock: options.clock,
      ended: (run) => this.#ended(run),
    };
  }

  get pendingCount(): number {
    return this.#shared.gates.waitingCount;
  }

  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<SchedulerResult> {
    const refusal = this.#refusal(request);
    if (refusal !== null) {
      releaseInputs();
      return Promise.reject(refusal);
    }
    const nowNs = this.#options.clock.monotonicNs();
    record.queuedNs = nowNs;
    record.startedNs = nowNs;
    const run = new EnsembleRun(this.#shared, this.#planFor(request), request, record, releaseInputs);
    this.#active.add(run);
    run.start();
    return run.promise;
  }

  close(): Promise<void> {
    this.#drain.closing = true;
    if (this.#active.size === 0 || this.#isAbandoned) this.#drain.finish();
    return this.#drain.closed;
  }

  abandon(error: InferenceError): void {
    this.#isAbandoned = true;
    for (const run of this.#active) run.abandon(error);
    if (this.#drain.closing) this.#drain.finish();
  }

  #refusal(request: InferenceRequest): InferenceError | null {
    if (this.#drain.closing) return schedulerStoppingError(request);
    if (request.signal?.aborted) return requestCancelled(request);
    return this.#active.size >= this.#options.queueLengthMax ? queueFullError(request) : null;
  }

  #planFor({ requestedOutputs }: InferenceRequest): EnsemblePlan {
    if (requestedOutputs === null || requestedOutputs.length === 0) return this.#planForAll;
    // The order of the requested outputs does not matter, because a plan lists them in the order of the graph.
    const key = requestedOutputs.toSorted().join("\n");
    let plan = this.#plans.get(key);
    if (plan === undefined) {
      plan = selectEnsembleSteps(this.#shared.graph, requestedOutputs);
      if (this.#plans.size < plansMax) this.#plans.set(key, plan);
    }
    return plan;
  }

  #ended(run: EnsembleRun): void {
    this.#active.delete(run);
    if (this.#drain.closing && this.#active.size === 0) this.#drain.finish();
  }
}
