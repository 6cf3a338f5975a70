import type { Clock } from "@galatea/base";
import {
  newRecord,
  noParameters,
  DeferredResponses,
  newInferenceRequest,
  type Execution,
  type InferenceRequest,
  type InferenceResponse,
  type Instance,
  type InstanceState,
  type InstanceSupervision,
  type Outcome,
  type Released,
  type RequestRecord,
} from "../inference/index.ts";
import type { DynamicBatchingConfig, EnsembleConfig, ModelConfig, QueuePolicy } from "../modelconfig/index.ts";
import { BlockSegment, type Block, type Tensor } from "../tensor/index.ts";
import type { Scheduler } from "./scheduler.ts";

/** A manual clock; timers fire in order when a test advances it. */
export class ManualClock implements Clock {
  #nowNs = 1e9;
  #timers: { atNs: number; fire: () => void }[] = [];

  epochMs(): number {
    return this.#nowNs / 1e6;
  }
  monotonicNs(): number {
    return this.#nowNs;
  }
  timer(delayMs: number, fire: () => void): Disposable {
    const timer = { atNs: this.#nowNs + delayMs * 1e6, fire };
    this.#timers.push(timer);
    return {
      [Symbol.dispose]: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }
  get timerCount(): number {
    return this.#timers.length;
  }

  /** Advances the time, fires timers and yields to the event loop. */
  async move(ms: number): Promise<void> {
    const untilNs = this.#nowNs + ms * 1e6;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.atNs <= untilNs).sort((a, b) => a.atNs - b.atNs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#nowNs = Math.max(this.#nowNs, due.atNs);
      due.fire();
      await twoTicks();
    }
    this.#nowNs = untilNs;
    await twoTicks();
  }
}

/** Waits for two event loop ticks, so that work which the first one schedules has run. */
export async function twoTicks(): Promise<void> {
  for (let count = 0; count < 2; count++) await new Promise((resolve) => setImmediate(resolve));
}

export function tensorOf(name: string, shape: readonly number[], block: Block | null = null): Tensor {
  const bytes = shape.reduce((product, dim) => product * dim, 4);
  return { name, datatype: "FP32", shape, data: block === null ? new Uint8Array(bytes) : block.bytes, block };
}

export function requestOf(id: string, more: Partial<InferenceRequest> = {}): InferenceRequest {
  return newInferenceRequest({
    id,
    modelName: "m",
    inputs: [tensorOf("A", [1, 4])],
    ...more,
  });
}

export function responseOf(id: string, outputs: readonly Tensor[] = []): InferenceResponse {
  return { modelName: id, modelVersion: "1", outputs, parameters: noParameters };
}

/** The supervision of an instance, with a state that the test sets. */
export class ManualSupervision implements InstanceSupervision {
  #state: InstanceState = "up";
  #change = Promise.withResolvers<void>();

  get state(): InstanceState {
    return this.#state;
  }

  changed(): Promise<void> {
    return this.#change.promise;
  }

  /** Number of calls of `needed` while the instance was dormant. */
  neededCount = 0;

  /** State of the instance after a call of `needed`; null to stay dormant. */
  stateWhenNeeded: InstanceState | null = null;

  needed(): void {
    this.neededCount++;
    this.#state = this.stateWhenNeeded ?? this.#state;
  }

  async becomes(state: InstanceState): Promise<void> {
    this.#state = state;
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
    await twoTicks();
  }
}

/** An instance whose executions a test ends. Batches are named by their requests' ids: "a b". */
export class StubInstance implements Instance {
  readonly name: string;
  readonly executionsMax: number;
  supervision: ManualSupervision | null = null;
  readonly log: string[] = [];
  /** Ids of requests that were cancelled after they were sent to the instance. */
  readonly cancelled: string[] = [];
  readonly #open: { ids: readonly string[]; end: (execution: Execution) => void; fail: (error: Error) => void }[] = [];

  constructor(name = "m_0_0", executionsMax = 1) {
    this.name = name;
    this.executionsMax = executionsMax;
  }

  execute(batch: readonly InferenceRequest[]): Promise<Execution> {
    const ids = batch.map((request) => request.id);
    this.log.push(ids.join(" "));
    const { promise, resolve, reject } = Promise.withResolvers<Execution>();
    this.#open.push({ ids, end: resolve, fail: reject });
    return promise;
  }

  /** Executions that have not ended. */
  get openCount(): number {
    return this.#open.length;
  }

  abandonRequest(request: InferenceRequest): void {
    this.cancelled.push(request.id);
  }

  /** Ends the oldest execution; every request gets a response named by its id unless `outcome` says otherwise. */
  async end(outcome: (id: string) => Released = responseOf): Promise<void> {
    const execution = this.#open.shift();
    execution?.end({
      outcomes: execution.ids.map((id) => outcome(id)),
      computeInputNs: 1,
      computeInferNs: 2,
      computeOutputNs: 3,
    });
    await twoTicks();
  }

  /** Ends the oldest execution with deferred responses; each request completes when its promise resolves. */
  async release(ends: readonly Promise<Outcome | null>[]): Promise<void> {
    const execution = this.#open.shift();
    const outcomes = ends.map((end) => new DeferredResponses(end));
    execution?.end({ outcomes, computeInputNs: 1, computeInferNs: 2, computeOutputNs: 3 });
    await twoTicks();
  }

  async crash(error: Error): Promise<void> {
    this.#open.shift()?.fail(error);
    await twoTicks();
  }
}

/** Returns the outcome of a cancelled request. */
export function cancelledOutcome(id: string): string {
  return `CANCELLED [request id: ${id}] Request for model 'm' was cancelled`;
}

export interface Sent {
  readonly record: RequestRecord;
  readonly controller: AbortController;
  /** State of the request: "waiting", the model name of its response, or "CODE message" of its error. */
  outcome: string;
  releaseCount: number;
}

/** Calls `infer` for a model that sends one response, and returns that response. */
export async function inferOne(
  scheduler: Scheduler,
  ...request: Parameters<Scheduler["infer"]>
): Promise<InferenceResponse> {
  const settlement = await scheduler.infer(...request);
  if (settlement === "sent") throw new Error("the responses went to a sink");
  return settlement;
}

/** Sends a request and records its outcome; `settled` collects ids in the order in which they settle. */
export function send(
  scheduler: Scheduler,
  id: string,
  more: Partial<InferenceRequest> & { readonly batchSize?: number; readonly settled?: string[] } = {},
): Sent {
  const controller = new AbortController();
  const { batchSize = 1, settled, ...request } = more;
  const sent: Sent = { record: newRecord(0, batchSize), controller, outcome: "waiting", releaseCount: 0 };
  const settle = (outcome: string) => {
    sent.outcome = outcome;
    settled?.push(id);
  };
  scheduler
    .infer(requestOf(id, { signal: controller.signal, ...request }), sent.record, () => sent.releaseCount++)
    .then(
      (response) => settle(response === "sent" ? "sent" : response.modelName),
      (error: { code: string; message: string }) => settle(`${error.code} ${error.message}`),
    );
  return sent;
}

export const noPolicy: QueuePolicy = {
  timeoutAction: "REJECT",
  defaultTimeoutUs: 0,
  allowTimeoutOverride: false,
  queueLengthMax: 0,
};

export function modelOf(name: string, more: Partial<ModelConfig> = {}): ModelConfig {
  return {
    name,
    platform: "",
    backend: "fake",
    versionPolicy: { kind: "latest", versionCount: 1 },
    maxBatchSize: 0,
    inputs: [],
    outputs: [],
    scheduling: { kind: "direct" },
    instanceGroups: [],
    warmUps: [],
    defaultModelFilename: "",
    parameters: new Map(),
    metricTags: new Map(),
    decoupled: false,
    graphLevel: 0,
    message: null as never,
    ...more,
  };
}

export function dynamicModel(
  maxBatchSize: number,
  more: Partial<DynamicBatchingConfig> = {},
  config: Partial<ModelConfig> = {},
): ModelConfig {
  return modelOf("m", {
    maxBatchSize,
    scheduling: {
      kind: "dynamic",
      preferredBatchSizes: [maxBatchSize],
      queueDelayMaxUs: 0,
      preserveOrdering: false,
      priorityLevels: 0,
      defaultPriorityLevel: 0,
      defaultQueuePolicy: noPolicy,
      priorityQueuePolicy: new Map(),
      ...more,
    },
    ...config,
  });
}

export function ensembleModel(
  steps: EnsembleConfig["steps"],
  more: Partial<ModelConfig> & { readonly inflightRequestsMax?: number } = {},
): ModelConfig {
  const { inflightRequestsMax = 0, ...config } = more;
  return modelOf("e", { ...config, scheduling: { kind: "ensemble", steps, inflightRequestsMax } });
}

/** A block that throws when it is released too often; `live` counts blocks with references. */
export class CountedMemory {
  live = 0;
  readonly faults: string[] = [];

  block(byteLength = 4): Block {
    let references = 1;
    this.live++;
    const block: Block = {
      arenaId: 1,
      byteOffset: 0,
      byteLength,
      bytes: new Uint8Array(byteLength),
      get referenceCount() {
        return references;
      },
      segment: (at, partBytes) => new BlockSegment(block, at, partBytes),
      retain: () => {
        if (references === 0) this.faults.push("retained after its end");
        references++;
      },
      release: () => {
        references--;
        if (references === 0) this.live--;
        if (references < 0) this.faults.push("released twice");
      },
    };
    return block;
  }
}
