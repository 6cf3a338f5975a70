import type { Readable } from "node:stream";
import {
  AwsError,
  ChangeNotifier,
  openDeadline,
  rejectOnAbort,
  readToBuffer,
  reserveCallMemory,
  type Clock,
} from "@galatea/base";
import type { ModelRecord } from "../definitions/index.ts";
import {
  ContainerConnectionLost,
  InstanceFailure,
  RequestNotSent,
  UnknownInstance,
  type AgentReply,
} from "../instance-agent/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import {
  ContainerChain,
  newChainHop,
  replyHeader,
  replyLength,
  type ChainHop,
  type InvocationTarget,
} from "./container-chain.ts";
import { beginTrace, recordModelTime, recordOutcome, type InvocationTrace } from "./invocation-metrics.ts";
import { outcomeOfError, type InvocationOutcome } from "./invocation-outcome.ts";
import { bufferedBytesMax, type InvocationLimits, type InvocationReply, type InvocationRequest } from "./invocation.ts";
import {
  connectionError,
  containerError,
  InvocationTimeout,
  toModelError,
  streamError,
  timeoutText,
  payloadTooLarge,
} from "./invocation-errors.ts";
import { newSessionId, parseOpenedSession, type OpenedSession } from "./session-headers.ts";

export interface InstanceInvocationsOptions {
  readonly containers: readonly InvocationTarget[];
  readonly executionMode: ModelRecord["executionMode"];
  readonly variantName: string;
  readonly metrics: VariantMetrics;
  readonly limits: InvocationLimits;
  readonly clock: Clock;
}

interface FailedRequest {
  readonly request: InvocationRequest;
  /** The container that the request waited for. */
  readonly awaited: ChainHop | null;
  readonly isLate: boolean;
}

const newSessionHeader = "x-amzn-sagemaker-new-session-id";
const closedSessionHeader = "x-amzn-sagemaker-closed-session-id";

export interface InstanceInvokeOptions {
  /** True if a request that this instance has not started may be sent to another instance. */
  readonly mayGoElsewhere: boolean;
}

/**
 * The invocations of one instance. Each invocation first waits for its model in multi-model containers. It then passes
 * all containers, or goes to the named one in Direct mode. Its metrics are recorded once, at its end.
 */
export class InstanceInvocations {
  readonly #options: InstanceInvocationsOptions;
  readonly #idle = new ChangeNotifier();
  #inFlightCount = 0;
  #streamCount = 0;

  constructor(options: InstanceInvocationsOptions) {
    this.#options = options;
  }

  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** True if the instance rejects every request because of `requestsMax`. */
  get isFull(): boolean {
    return this.#inFlightCount >= this.#options.limits.requestsMax;
  }

  /** Returns the reason for which a request would be rejected; null if it would be accepted. */
  refusalOf({ isStreamed }: InvocationRequest): string | null {
    if (this.isFull) return "Too many requests are in flight on this instance";
    const isFullOfStreams = this.#streamCount >= this.#options.limits.streamsMax;
    return isStreamed && isFullOfStreams ? "Too many streams are open on this instance" : null;
  }

  /** Resolves when no request is in flight. */
  async idle(signal: AbortSignal): Promise<void> {
    while (this.#inFlightCount > 0) await rejectOnAbort(this.#idle.nextChange(), signal);
  }

  /**
   * Invokes the instance. Throws AwsError with the codes and messages of SageMaker's runtime, or the reason of the
   * request's signal. With `mayGoElsewhere`, also throws RequestNotSent, and then records no metrics.
   */
  async invoke(request: InvocationRequest, { mayGoElsewhere }: InstanceInvokeOptions): Promise<InvocationReply> {
    const refusal = this.refusalOf(request);
    if (refusal !== null)
      throw this.#refused(request, new AwsError("ServiceUnavailable", refusal, { statusFallback: 503 }));
    const hops = this.#targetsOf(request).map(newChainHop);
    const trace = beginTrace(request, hops);
    request.bounds?.onContainer(hops[0]?.target.place.logStreamArn ?? "");
    this.#inFlightCount += 1;
    if (request.isStreamed) this.#streamCount += 1;
    let finished = false;
    const finish = (outcome: InvocationOutcome) => {
      if (finished) return;
      finished = true;
      this.#inFlightCount -= 1;
      if (request.isStreamed) this.#streamCount -= 1;
      if (this.#inFlightCount === 0) this.#idle.notify();
      for (const { lease } of hops) lease?.[Symbol.dispose]();
      this.#record(request, trace, outcome);
    };
    try {
      // All models are acquired before the first container is invoked. Otherwise, a missing model would waste the
      // computation of earlier containers.
      for (const hop of hops) {
        if (hop.target.container.view.models !== null) await this.#lease(hop, { request, trace, mayGoElsewhere });
      }
      const reply = await this.#send(request, hops, { trace, finish, mayGoElsewhere });
      // For a new session, the caller calls `done` or `failed`, because it may have to reject the session's id.
      if (Buffer.isBuffer(reply.body) && request.session !== newSessionId) finish({ kind: "succeeded" });
      return reply;
    } catch (error) {
      finish(endOf(error, request, hops));
      throw error;
    }
  }

  /** Returns the error for a request that waited for an instance longer than the limit, and records it. */
  unavailable(request: InvocationRequest): AwsError {
    const needed = this.#targetsOf(request);
    const absent = needed.find(({ container }) => !container.view.isInService) ?? needed[0];
    if (absent === undefined)
      return new AwsError(
        "ServiceUnavailable",
        `Container ${request.targetContainer} not found on the endpoint's instance.`,
        { statusFallback: 503 },
      );
    const text = `The container is not in service: ${absent.container.view.health.failure}`;
    return this.#refused(
      request,
      containerError(503, text, absent.place, { cause: new ContainerConnectionLost(text) }),
    );
  }

  #targetsOf({ targetContainer }: InvocationRequest): readonly InvocationTarget[] {
    const { containers, executionMode } = this.#options;
    if (executionMode === "Serial") return containers;
    return containers.filter(({ place }) => place.containerName === targetContainer);
  }

  #refused(request: InvocationRequest, error: AwsError): AwsError {
    this.#record(request, beginTrace(request, []), endOf(error, request, []));
    return error;
  }

  #record(request: InvocationRequest, trace: InvocationTrace, outcome: InvocationOutcome): void {
    const { metrics, clock } = this.#options;
    const nowNs = clock.monotonicNs();
    if (request.bounds !== undefined) return recordModelTime(metrics, { trace, outcome }, nowNs);
    recordOutcome(metrics, { trace, outcome }, { nowNs, totalNs: nowNs - request.receivedNs });
  }

  async #lease(
    hop: ChainHop,
    on: { readonly request: InvocationRequest; readonly trace: InvocationTrace; readonly mayGoElsewhere: boolean },
  ): Promise<void> {
    const { request, trace, mayGoElsewhere } = on;
    const { container, place, modelDataUrl } = hop.target;
    try {
      const lease = await container.acquire(request.targetModel ?? "", request.signal);
      hop.lease = lease;
      trace.cacheHit = lease.cacheHit;
      trace.waitedUs = lease.waitedUs;
    } catch (error) {
      // The container's restarts keep failing, or the agent is lost or deletes the instance. Another instance can serve
      // the request, because it was not sent to a container.
      const isLost = error instanceof InstanceFailure || error instanceof ContainerConnectionLost;
      if (mayGoElsewhere && (isLost || error instanceof UnknownInstance)) throw new RequestNotSent({ cause: error });
      throw toModelError(error, modelDataUrl, place);
    }
  }

  async #send(
    request: InvocationRequest,
    hops: readonly ChainHop[],
    on: {
      readonly trace: InvocationTrace;
      readonly finish: (outcome: InvocationOutcome) => void;
      readonly mayGoElsewhere: boolean;
    },
  ): Promise<InvocationReply> {
    const { trace, finish, mayGoElsewhere } = on;
    const { limits, clock, variantName } = this.#options;
    const answerMsMax = request.isStreamed ? limits.streamMsMax : limits.responseMsMax;
    const { answerMsMax: limitMs = answerMsMax, responseBytesMax: answerBytesMax = limits.responseBytesMax } =
      request.bounds ?? {};
    // One time limit applies to all containers together.
    const afterMs = Math.max(0, limitMs - (request.waitedMs ?? 0));
    const deadline = openDeadline({ clock, afterMs, signal: request.signal });
    const untilNs = clock.monotonicNs() + afterMs * 1e6;
    const chain = new ContainerChain({ hops, responseBytesMax: answerBytesMax, untilNs, clock, mayGoElsewhere });
    const last = hops.at(-1);
    const end = () => {
      if (last !== undefined && last.sentNs > 0) last.endedNs = clock.monotonicNs();
      chain[Symbol.dispose]();
      deadline[Symbol.dispose]();
    };
    try {
      const reply = await chain.send(request, await request.body(), deadline.signal);
      const openedSession = request.session === newSessionId && last !== undefined ? openedBy(reply, last) : null;
      const received = request.isStreamed ? reply.body : await receive(reply, answerBytesMax, request);
      const isHeld = Buffer.isBuffer(received);
      if (isHeld) end();
      return {
        contentType: replyHeader(reply, "content-type"),
        customAttributes: replyHeader(reply, "x-amzn-sagemaker-custom-attributes"),
        variantName,
        openedSession,
        closedSession: request.session === undefined ? null : replyHeader(reply, closedSessionHeader),
        body: received,
        byteLength: isHeld ? received.length : replyLength(reply),
        done: () => {
          end();
          finish({ kind: "succeeded" });
        },
        onStart: () => (trace.firstChunkNs = clock.monotonicNs()),
        failed: (error) => {
          const failure = { request, awaited: chain.awaited, isLate: deadline.hasExpired };
          // An AwsError rejects a response of which nothing was sent, such as one that opens a session with a used id.
          const isRejected = request.isStreamed || error instanceof AwsError;
          const isUnsent = isHeld || (isRejected && trace.firstChunkNs === 0);
          const reported = isUnsent ? this.#errorOf(error, failure) : this.#streamFailure(error, failure);
          // After the time limit, unread data means that the caller read too slowly. This is not a failure of the
          // container.
          const isUnread = failure.isLate && reply.body.readableLength > 0;
          finish(isUnread ? { kind: "cancelled" } : endOf(reported, request, hops));
          return reported;
        },
      };
    } catch (error) {
      const { awaited } = chain;
      end();
      throw this.#errorOf(error, { request, awaited: awaited ?? hops[0] ?? null, isLate: deadline.hasExpired });
    }
  }

  /** Returns the error for a response that failed after its first chunk was sent to the client. */
  #streamFailure(error: unknown, { request, awaited, isLate }: FailedRequest): unknown {
    if (request.signal.aborted) return request.signal.reason;
    return streamError(error, { isLate, containerName: awaited?.target.place.containerName ?? "primary" });
  }

  /** Returns the error for a failed request. */
  #errorOf(error: unknown, { request, awaited, isLate }: FailedRequest): unknown {
    if (error instanceof RequestNotSent || error instanceof AwsError) return error;
    if (request.signal.aborted || awaited === null) return request.signal.reason ?? error;
    awaited.status = isLate ? 504 : 503;
    const { place } = awaited.target;
    if (isLate) return containerError(0, timeoutText(place.containerName), place);
    return connectionError(error, place);
  }
}

/** Returns the outcome of a request that rejects with an error. */
function endOf(error: unknown, { signal }: InvocationRequest, hops: readonly ChainHop[]): InvocationOutcome {
  if (error instanceof RequestNotSent) return { kind: "not-sent" };
  if (signal.reason instanceof InvocationTimeout) return { kind: "timed-out" };
  return outcomeOfError(error, { isCancelled: signal.aborted, hasResponse: hops.some(({ status }) => status > 0) });
}

function openedBy(reply: AgentReply, { target }: ChainHop): OpenedSession | null {
  const text = replyHeader(reply, newSessionHeader);
  if (text === null) return null;
  const opened = parseOpenedSession(text);
  if (opened !== null) return opened;
  reply.body.destroy();
  throw containerError(502, `The header ${newSessionHeader} is not a session id with an expiry time`, target.place);
}

/**
 * Buffers a response up to a limit. A response of known length above `bufferedBytesMax`, or of a background request, is
 * returned as a stream, because it may need too much memory.
 */
async function receive(
  reply: AgentReply,
  bytesMax: number,
  { memory, bounds }: InvocationRequest,
): Promise<Buffer | Readable> {
  const length = replyLength(reply);
  if (length !== null && length > bytesMax) {
    reply.body.destroy();
    throw payloadTooLarge(bytesMax);
  }
  if (bounds !== undefined || (length !== null && length > bufferedBytesMax)) return reply.body;
  try {
    if (length !== null) reserveCallMemory(memory, length);
    const take = length === null ? (bytes: number) => reserveCallMemory(memory, bytes) : null;
    return await readToBuffer(reply.body, bytesMax, () => payloadTooLarge(bytesMax), take);
  } catch (error) {
    reply.body.destroy();
    throw error;
  }
}
