import type { Readable } from "node:stream";
import { AwsError, ByteBudget, ByteLease, delay, openDeadline, Semaphore, TaskGroup } from "../../base/index.ts";
import { FleetMember, InstanceSampler, plannedContainers, type FleetOptions } from "../endpoints/index.ts";
import { beginHop, beginOutcome, ContainerChain, recordOutcome, type InvocationRequest } from "../invocations/index.ts";
import { VariantMetrics } from "../series/index.ts";
import { jobSeries, transformLogGroup } from "./job-signals.ts";
import { readExecutionParameters } from "./execution-parameters.ts";
import { mayDiffer, retryDelayMs } from "./retries.ts";
import { clientError, TransformError } from "./transform-error.ts";
import type { ExecutionParameters, TransformPlan } from "./transform-request.ts";
import type { TransformJobRecord } from "./transform-state.ts";
import { variantPlan } from "./variant-plan.ts";

const sampleIntervalMs = 20_000;
const hopAnswerBytesMax = 100 * 2 ** 20;
const heldHopsBytesMax = 512 * 2 ** 20;

export interface TransformInstanceOptions {
  readonly id: string;
  readonly job: TransformJobRecord;
  readonly plan: TransformPlan;
  readonly fleet: FleetOptions;
  /** What is worth a line in the job's log. */
  readonly tell: (line: string) => void;
}

export interface Sent {
  /** Called for every attempt. */
  readonly body: () => Promise<Buffer | Readable>;
  /** Null where it is not known, or is that of the buffer. */
  readonly byteLength: number | null;
}

/** One instance of a job: its containers, and requests to them, which are made again where that may help. */
export class TransformInstance implements AsyncDisposable {
  readonly #options: TransformInstanceOptions;
  readonly #member: FleetMember;
  readonly #metrics: VariantMetrics;
  readonly #tasks: TaskGroup;
  readonly #memory = new ByteBudget(heldHopsBytesMax);
  #places = new Semaphore(1);

  constructor(options: TransformInstanceOptions) {
    this.#options = options;
    const { id, job, plan, fleet } = options;
    const variant = variantPlan(job);
    const budget = fleet.host.budgetOf(variant.variant.InstanceType);
    const containers = plannedContainers(variant, budget);
    const logStream = `${job.name}/${id}`;
    this.#metrics = new VariantMetrics(jobSeries(fleet.openSeries, logStream), {
      endpoint: job.name,
      variant: variant.variant.VariantName,
      config: job.name,
      multiModel: false,
      containers: containers.filter(({ isOnly }) => !isOnly).map(({ name }) => name),
    });
    this.#member = new FleetMember({
      id,
      // Of no endpoint's name: its credentials are not that endpoint's.
      ownerName: `transform-job/${job.name}`,
      logStream,
      plan: variant,
      budget,
      containers,
      fleet: { ...fleet, instanceLimits: patient(fleet, plan.timeoutMs) },
      metrics: this.#metrics,
      place: { ...job.owner, logGroup: transformLogGroup, logsLink: fleet.logsLink },
    });
    this.#tasks = new TaskGroup((error) => {
      fleet.logger.error("a transform instance's metrics are no longer sampled", { error: String(error) });
    });
  }

  /** Rejects with InstanceFailure or ModelDataError; nothing is left of it then. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#member.start(signal);
    this.#tasks.run((closing) => this.#sample(closing));
  }

  async executionParameters(signal: AbortSignal): Promise<ExecutionParameters> {
    const client = await this.#member.invoked[0]?.container.ready(signal);
    return readExecutionParameters((await client?.executionParameters(signal)) ?? null);
  }

  /** How many requests the containers are given at once; to be said before the first. */
  allow(concurrency: number): void {
    this.#places = new Semaphore(concurrency);
  }

  /** The whole answer to a request. Rejects with what the last attempt failed with. */
  async ask(sent: Sent, answerBytesMax: number, signal: AbortSignal): Promise<Buffer> {
    return await this.#attempted(signal, async () => {
      const pieces: Buffer[] = [];
      let byteLength = 0;
      for await (const piece of this.#exchange(sent, signal)) {
        byteLength += piece.length;
        if (byteLength > answerBytesMax) {
          const text = `the container's answer is longer than ${answerBytesMax} bytes; lower MaxPayloadInMB or MaxConcurrentTransforms`;
          throw clientError(text);
        }
        pieces.push(piece);
      }
      return Buffer.concat(pieces, byteLength);
    });
  }

  /** The pieces of an answer of any length. Made again only while none of it has come. */
  async *askStreaming(sent: Sent, signal: AbortSignal): AsyncGenerator<Buffer> {
    const begun = await this.#attempted(signal, async () => {
      const pieces = this.#exchange(sent, signal);
      return { pieces, first: await pieces.next() };
    });
    try {
      if (begun.first.done !== true) yield begun.first.value;
      yield* begun.pieces;
    } finally {
      await begun.pieces.return(undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#member[Symbol.asyncDispose]();
  }

  async #attempted<Value>(signal: AbortSignal, attempt: () => Promise<Value>): Promise<Value> {
    const { plan, fleet, tell } = this.#options;
    for (let count = 0; ; count++) {
      try {
        return await attempt();
      } catch (error) {
        signal.throwIfAborted();
        const isFinal = error instanceof TransformError || !mayDiffer(error) || count >= plan.retriesMax;
        if (isFinal) throw error;
        tell(`a request is made again (${count + 1} of ${plan.retriesMax}): ${textOf(error)}`);
        await delay(fleet.clock, retryDelayMs(count), signal);
      }
    }
  }

  /** One request through the containers; its place is held until the last of the answer has been taken. */
  async *#exchange(sent: Sent, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { plan, fleet } = this.#options;
    const { clock } = fleet;
    using _place = await this.#places.acquire(signal);
    const { restartWaitMsMax } = fleet.invocationLimits;
    const hops = this.#member.invoked.map((container) => beginHop({ ...container, clock, restartWaitMsMax }));
    using memory = new ByteLease(this.#memory);
    const late = () => new Error(`no answer within the ${plan.timeoutMs / 1000} s of InvocationsTimeoutInSeconds`);
    using deadline = openDeadline({ clock, afterMs: plan.timeoutMs, signal, late });
    using chain = new ContainerChain({ hops, answerBytesMax: hopAnswerBytesMax, clock });
    const request: InvocationRequest = {
      headers: this.#headers(sent),
      targetModel: null,
      targetVariant: null,
      targetContainer: null,
      body: sent.body,
      memory,
      receivedNs: clock.monotonicNs(),
      signal: deadline.signal,
    };
    const outcome = beginOutcome(request, hops);
    const body = await sent.body();
    try {
      const reply = await chain.send(request, body, deadline.signal);
      outcome.status = reply.status;
      for await (const piece of reply.body as AsyncIterable<Buffer>) yield piece;
    } catch (error) {
      if (outcome.status < 300) outcome.status = error instanceof AwsError ? (hops.at(-1)?.status ?? 500) : 503;
      throw deadline.isLate ? late() : error;
    } finally {
      if (!Buffer.isBuffer(body)) body.destroy();
      const nowNs = clock.monotonicNs();
      recordOutcome(this.#metrics, outcome, { nowNs, totalNs: nowNs - request.receivedNs });
    }
  }

  #headers({ byteLength }: Sent): Record<string, string> {
    const { contentType, accept } = this.#options.plan;
    return {
      ...(contentType === null ? {} : { "content-type": contentType }),
      ...(accept === null ? {} : { accept }),
      ...(byteLength === null ? {} : { "content-length": String(byteLength) }),
    };
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { fleet, job } = this.#options;
    const metrics = this.#metrics;
    const sampler = new InstanceSampler(fleet.clock, fleet.host.budgetOf(job.request.TransformResources.InstanceType));
    const to = {
      instance: metrics.recordInstance.bind(metrics),
      container: (name: string) => metrics.recordUse.bind(metrics, name),
    };
    for (;;) {
      await delay(fleet.clock, sampleIntervalMs, closing);
      await sampler.sample(this.#member, to);
    }
  }
}

/** A container of a batch may take as long as the job says before the first byte of its answer. */
function patient(fleet: FleetOptions, timeoutMs: number): FleetOptions["instanceLimits"] {
  const { instanceLimits } = fleet;
  const stalledMsMax = Math.max(instanceLimits.container.stalledMsMax, timeoutMs);
  return { ...instanceLimits, container: { ...instanceLimits.container, stalledMsMax } };
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
