import type { Readable } from "node:stream";
import {
  AwsError,
  ByteBudget,
  ByteLease,
  delay,
  openDeadline,
  Semaphore,
  TaskGroup,
  type Deadline,
} from "@galatea/base";
import {
  VariantInstance,
  InstanceSampler,
  footprintBytes,
  groupsFootprint,
  planContainers,
  type FleetOptions,
} from "../endpoints/index.ts";
import { instanceTypeBudget } from "../nodes/index.ts";
import { errorTextBytesMax, ResponseRejected } from "../instance-agent/index.ts";
import {
  newChainHop,
  beginTrace,
  clientTimeoutHeader,
  ContainerChain,
  containerError,
  bufferedBytesMax,
  outcomeOfError,
  recordOutcome,
  type InvocationOutcome,
  type InvocationRequest,
  type InvocationTarget,
} from "../invocations/index.ts";
import { VariantMetrics } from "../series/index.ts";
import { transformInstanceSeries, transformLogGroup } from "./job-metrics.ts";
import { readExecutionParameters } from "./execution-parameters.ts";
import { isRetryable, transformRetryDelayMs } from "./retries.ts";
import { transformClientError, TransformError } from "./transform-error.ts";
import type { ExecutionParameters, TransformPlan } from "./transform-request.ts";
import { transformOwnerName, type TransformJobRecord } from "./transform-state.ts";
import { transformVariantPlan } from "./variant-plan.ts";

const sampleIntervalMs = 20_000;
const hopResponseBytesMax = 100 * 2 ** 20;
/**
 * Maximum number of buffered bodies in a pipeline: a container's response is buffered until the next container has
 * responded.
 */
const bufferedHopsMax = 2;

export interface TransformInstanceOptions {
  readonly id: string;
  readonly job: TransformJobRecord;
  readonly plan: TransformPlan;
  readonly fleet: FleetOptions;
  /** Writes a line to the job's log. */
  readonly log: (line: string) => void;
}

/** A request whose response is buffered. */
export interface BufferedTransformRequest {
  readonly body: Buffer;
  readonly responseBytesMax: number;
  /** Bytes reserved for the response. A longer response is cancelled with `ResponseExceedsReservation`. */
  readonly responseBufferedBytes: number;
}

/** The error of a response that exceeds its reserved memory. The caller reserves more and repeats the request. */
export class ResponseExceedsReservation extends ResponseRejected {
  constructor() {
    super("the response is longer than the memory reserved for it");
    this.name = "ResponseExceedsReservation";
  }
}

/** The error of a response that exceeds the maximum length. */
class ResponseTooLong extends ResponseRejected {
  constructor(bytesMax: number) {
    super(`the container's response is longer than ${bytesMax} bytes; lower MaxPayloadInMB or MaxConcurrentTransforms`);
    this.name = "ResponseTooLong";
  }
}

/** A streamed request with its response. */
export interface StreamedTransformRequest {
  /** Returns the body; called once for every attempt. */
  readonly body: () => Promise<Buffer | Readable>;
  /** Content length of a stream; null if it is unknown or the body is a buffer. */
  readonly byteLength: number | null;
}

/** One instance of a job: its containers, and requests to them. Retries requests if a retry may succeed. */
export class TransformInstance implements AsyncDisposable {
  readonly #options: TransformInstanceOptions;
  readonly #member: VariantInstance;
  readonly #metrics: VariantMetrics;
  readonly #tasks: TaskGroup;
  readonly #wholeHeaders: Record<string, string>;
  #slots = new Semaphore(1);

  constructor(options: TransformInstanceOptions) {
    this.#options = options;
    const { id, job, plan, fleet } = options;
    const variant = transformVariantPlan(job);
    const memoryBytes = footprintBytes(groupsFootprint([{ plan: variant, instanceCount: 1 }]));
    const placed = fleet.nodes.place({ needs: { memoryBytes } });
    const budget = instanceTypeBudget(variant.variant.InstanceType, placed.node);
    const containers = planContainers(variant, budget);
    this.#wholeHeaders = { ...this.#headers({ byteLength: null }), ...clientTimeoutHeader(plan.timeoutMs) };
    const logStream = `${job.name}/${id}`;
    this.#metrics = new VariantMetrics(transformInstanceSeries(fleet.openSeries, logStream), {
      endpoint: job.name,
      variant: variant.variant.VariantName,
      config: job.name,
      multiModel: false,
      containers: containers.filter(({ isOnly }) => !isOnly).map(({ name }) => name),
    });
    this.#member = new VariantInstance({
      id,
      ordinal: 0,
      fleetKey: null,
      ownerName: transformOwnerName(job.name),
      logStream,
      plan: variant,
      placed,
      budget,
      containers,
      fleet: { ...fleet, instanceLimits: withTimeout(fleet, plan.timeoutMs) },
      metrics: this.#metrics,
      modelOutdated: () => {},
      place: { ...job.owner, logGroup: transformLogGroup, logsLink: fleet.logsLink },
    });
    this.#tasks = new TaskGroup((error) => {
      fleet.logger.error("a transform instance's metrics are no longer sampled", { error: String(error) });
    });
  }

  /** Starts the containers. Rejects with InstanceFailure or ModelDataError, and leaves nothing running then. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#member.start(signal);
    this.#tasks.run((closing) => this.#sample(closing));
  }

  async executionParameters(signal: AbortSignal): Promise<ExecutionParameters> {
    const text = await this.#member.invoked[0]?.container.executionParameters(signal);
    return readExecutionParameters(text ?? null);
  }

  /** Sets the number of concurrent requests. Call it before the first request. */
  allow(concurrency: number): void {
    this.#slots = new Semaphore(concurrency);
  }

  /** Bytes of a request's buffers between containers, in addition to its body and response. */
  get hopBytes(): number {
    return this.#member.invoked.length > 1 ? bufferedHopsMax * bufferedBytesMax : 0;
  }

  /** Resolves with the complete response. Rejects with the error of the last attempt. */
  async invoke(sent: BufferedTransformRequest, signal: AbortSignal): Promise<Buffer> {
    try {
      return await this.#attempted(signal, () => this.#invokeOnce(sent, signal));
    } catch (error) {
      throw error instanceof ResponseTooLong ? transformClientError(error.message, { cause: error }) : error;
    }
  }

  /** Yields a response of any length in chunks. Retries only before the first chunk. */
  async *invokeStreaming(sent: StreamedTransformRequest, signal: AbortSignal): AsyncGenerator<Buffer> {
    const started = await this.#attempted(signal, async () => {
      const chunks = this.#exchange(sent, signal);
      return { pieces: chunks, first: await chunks.next() };
    });
    try {
      if (started.first.done !== true) yield started.first.value;
      yield* started.pieces;
    } finally {
      await started.pieces.return(undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#member[Symbol.asyncDispose]();
  }

  async #attempted<Value>(signal: AbortSignal, attempt: () => Promise<Value>): Promise<Value> {
    const { plan, fleet, log: report } = this.#options;
    for (let count = 0; ; count++) {
      try {
        return await attempt();
      } catch (error) {
        signal.throwIfAborted();
        const isFinal =
          error instanceof TransformError ||
          error instanceof ResponseRejected ||
          !isRetryable(error) ||
          count >= plan.retriesMax;
        if (isFinal) throw error;
        report(`a request is repeated (${count + 1} of ${plan.retriesMax}): ${textOf(error)}`);
        await delay(fleet.clock, transformRetryDelayMs(count), signal);
      }
    }
  }

  async #invokeOnce(
    { body, responseBytesMax: answerBytesMax, responseBufferedBytes: answerHeldBytes }: BufferedTransformRequest,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const admit = (byteLength: number) => {
      if (byteLength > answerBytesMax) throw new ResponseTooLong(answerBytesMax);
      if (byteLength > answerHeldBytes) throw new ResponseExceedsReservation();
    };
    const [only, ...more] = this.#member.invoked;
    if (only !== undefined && more.length === 0) return await this.#invokeExclusively(only, { body, admit }, signal);
    const chunks: Buffer[] = [];
    let byteLength = 0;
    for await (const chunk of this.#exchange({ body: () => Promise.resolve(body), byteLength: null }, signal)) {
      byteLength += chunk.length;
      admit(byteLength);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, byteLength);
  }

  /** Sends a request to the only container of the instance, without the steps that a pipeline needs. */
  async #invokeExclusively(
    container: InvocationTarget,
    { body, admit }: { readonly body: Buffer; readonly admit: (byteLength: number) => void },
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { clock } = this.#options.fleet;
    const location = await this.#slots.acquire(signal);
    const receivedNs = clock.monotonicNs();
    const hop = newChainHop(container);
    const trace = beginTrace({ targetModel: null }, [hop]);
    let outcome: InvocationOutcome = { kind: "succeeded" };
    hop.sentNs = receivedNs;
    using deadline = this.#deadline(signal);
    try {
      const { signal: limit } = deadline;
      const sent = { headers: this.#wholeHeaders, body, admit, signal: limit };
      const reply = await container.container.invokeBuffered(sent);
      location[Symbol.dispose]();
      hop.status = reply.status;
      if (reply.status >= 200 && reply.status <= 299) return reply.body;
      throw containerError(reply.status, reply.body.subarray(0, errorTextBytesMax).toString("utf8"), container.place);
    } catch (error) {
      outcome = this.#endOf(error, deadline);
      throw deadline.hasExpired ? this.#timedOut() : error;
    } finally {
      location[Symbol.dispose]();
      const nowNs = clock.monotonicNs();
      recordOutcome(this.#metrics, { trace, outcome }, { nowNs, totalNs: nowNs - receivedNs });
    }
  }

  readonly #timedOut = (): Error =>
    new Error(`no response within the ${this.#options.plan.timeoutMs / 1000} s of InvocationsTimeoutInSeconds`);

  #endOf(error: unknown, { signal, hasExpired }: Deadline): InvocationOutcome {
    if (hasExpired) return { kind: "timed-out" };
    if (error instanceof ResponseTooLong) return { kind: "response-too-long" };
    // The request of a response that exceeded its memory is sent again, so it is not counted as an error.
    if (signal.aborted || error instanceof ResponseRejected) return { kind: "cancelled" };
    if (!(error instanceof AwsError)) return { kind: "model-error", status: 503 };
    return outcomeOfError(error, { isCancelled: false, hasResponse: true });
  }

  #deadline(signal: AbortSignal): Deadline {
    const { plan, fleet } = this.#options;
    return openDeadline({ clock: fleet.clock, afterMs: plan.timeoutMs, signal, createError: this.#timedOut });
  }

  /** Sends one request through the containers. Its slot is occupied until the response is consumed. */
  async *#exchange(sent: StreamedTransformRequest, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { clock } = this.#options.fleet;
    using _place = await this.#slots.acquire(signal);
    const hops = this.#member.invoked.map(newChainHop);
    // The job's memory already includes the buffers between containers.
    using memory = new ByteLease(new ByteBudget(Infinity));
    using deadline = this.#deadline(signal);
    const untilNs = clock.monotonicNs() + this.#options.plan.timeoutMs * 1e6;
    using chain = new ContainerChain({
      hops,
      responseBytesMax: hopResponseBytesMax,
      untilNs,
      clock,
      mayGoElsewhere: false,
    });
    const request: InvocationRequest = {
      headers: this.#headers(sent),
      targetModel: null,
      targetVariant: null,
      targetContainer: null,
      isStreamed: false,
      body: sent.body,
      memory,
      receivedNs: clock.monotonicNs(),
      signal: deadline.signal,
    };
    const trace = beginTrace(request, hops);
    let outcome: InvocationOutcome = { kind: "cancelled" };
    const body = await sent.body();
    try {
      const reply = await chain.send(request, body, deadline.signal);
      for await (const chunk of reply.body as AsyncIterable<Buffer>) yield chunk;
      outcome = { kind: "succeeded" };
    } catch (error) {
      outcome = this.#endOf(error, deadline);
      throw deadline.hasExpired ? this.#timedOut() : error;
    } finally {
      if (!Buffer.isBuffer(body)) body.destroy();
      const nowNs = clock.monotonicNs();
      recordOutcome(this.#metrics, { trace, outcome }, { nowNs, totalNs: nowNs - request.receivedNs });
    }
  }

  #headers({ byteLength }: Pick<StreamedTransformRequest, "byteLength">): Record<string, string> {
    const { contentType, accept } = this.#options.plan;
    return {
      ...(contentType === null ? {} : { "content-type": contentType }),
      ...(accept === null ? {} : { accept }),
      ...(byteLength === null ? {} : { "content-length": String(byteLength) }),
    };
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { fleet } = this.#options;
    const metrics = this.#metrics;
    const sampler = new InstanceSampler(fleet.clock);
    const to = {
      instance: metrics.recordInstance.bind(metrics),
      container: (name: string) => metrics.recordContainerUsage.bind(metrics, name),
    };
    for (;;) {
      await delay(fleet.clock, sampleIntervalMs, closing);
      await sampler.sample(this.#member, to);
    }
  }
}

/**
 * Returns limits for batch jobs: a container may take as long as the job allows before the first byte of its response.
 */
function withTimeout(fleet: FleetOptions, timeoutMs: number): FleetOptions["instanceLimits"] {
  const { instanceLimits } = fleet;
  const stalledMsMax = Math.max(instanceLimits.container.stalledMsMax, timeoutMs);
  return { ...instanceLimits, container: { ...instanceLimits.container, stalledMsMax } };
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
