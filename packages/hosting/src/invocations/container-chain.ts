import type { Readable } from "node:stream";
import { readToBuffer, reserveCallMemory, type Clock } from "@galatea/base";
import { readErrorText, type AgentContainer, type AgentReply, type AcquiredModel } from "../instance-agent/index.ts";
import { isValidContentType, hopHeaders, type ChainedHeaders } from "./hop-headers.ts";
import { HopStream } from "./hop-stream.ts";
import { bufferedBytesMax, type InvocationRequest } from "./invocation.ts";
import { containerError, payloadTooLarge, type InvocationSource } from "./invocation-errors.ts";

/** A container that can be invoked, with the data that error messages about it contain. */
export interface InvocationTarget {
  readonly container: AgentContainer;
  readonly place: InvocationSource;
  /** S3 URL of a multi-model container's models; empty for other containers. */
  readonly modelDataUrl: string;
}

/**
 * Returns the header that tells a container how long its caller still waits, in milliseconds. The container may abort
 * the request after that time.
 */
export function clientTimeoutHeader(limitMs: number): Readonly<Record<string, string>> {
  return { "x-galatea-call-limit-ms": String(Math.max(1, Math.ceil(limitMs))) };
}

/** One container that a request passes, with the status and times of its response. */
export interface ChainHop {
  readonly target: InvocationTarget;
  /** The model that a multi-model container has loaded for the request; null for other containers. */
  lease: AcquiredModel | null;
  /** HTTP status of the container's response, or of the error that replaces it; 0 before. */
  status: number;
  /** Monotonic time at which the request was sent to the container; 0 before. */
  sentNs: number;
  /** Monotonic time at which the container's response was complete; 0 before. */
  endedNs: number;
}

export function newChainHop(target: InvocationTarget): ChainHop {
  return { target, lease: null, status: 0, sentNs: 0, endedNs: 0 };
}

export interface ContainerChainOptions {
  readonly hops: readonly ChainHop[];
  /** Maximum bytes of each response that is passed to the next container. */
  readonly responseBytesMax: number;
  /** Monotonic time at which the caller stops waiting. */
  readonly untilNs: number;
  readonly clock: Clock;
  /** True if the request may be sent to another instance as long as no container has processed it. */
  readonly mayGoElsewhere: boolean;
}

interface CarriedBody {
  readonly body: Buffer | Readable;
  readonly headers: ChainedHeaders | null;
  /** The stream from the previous container; null if the body is the client's or is buffered. */
  readonly stream: HopStream | null;
  /** Bytes that the buffered body uses of the request's memory. */
  readonly heldBytes: number;
}

/**
 * Sends one request through a chain of containers: the response of each container is the request to the next. The
 * caller disposes the chain when the last response is no longer read.
 */
export class ContainerChain implements Disposable {
  readonly #options: ContainerChainOptions;
  readonly #streams: { readonly hop: ChainHop; readonly stream: HopStream }[] = [];
  #at: ChainHop | null = null;

  constructor(options: ContainerChainOptions) {
    this.#options = options;
  }

  /** The container whose response the request waits for, or whose response failed. Null before the first request. */
  get awaited(): ChainHop | null {
    return this.#streams.find(({ stream }) => stream.isAwaited)?.hop ?? this.#at;
  }

  /**
   * Sends the request through all containers and resolves with the response of the last one. Rejects with the failure
   * or the error response of any container.
   */
  async send(request: InvocationRequest, first: Buffer | Readable, signal: AbortSignal): Promise<AgentReply> {
    const { hops, clock } = this.#options;
    const last = hops.at(-1);
    let carried: CarriedBody = { body: first, headers: null, stream: null, heldBytes: 0 };
    for (const hop of hops) {
      this.#at = hop;
      const isLast = hop === last;
      const isMultiModel = hop.target.container.view.models !== null;
      // A single container gets all headers unchanged.
      const headers =
        hops.length === 1
          ? request.headers
          : hopHeaders(request.headers, { isLast, isMultiModel, carried: carried.headers });
      hop.sentNs = clock.monotonicNs();
      const reply = await this.#invokeContainer(hop, request, { headers, carried, signal });
      request.memory.shrinkBy(carried.heldBytes);
      if (isLast) return reply;
      carried = await this.#carry(hop, reply, request);
    }
    throw new Error("cannot invoke the model: it has no container");
  }

  async #invokeContainer(
    hop: ChainHop,
    request: InvocationRequest,
    sent: {
      readonly headers: Readonly<Record<string, string>>;
      readonly carried: CarriedBody;
      readonly signal: AbortSignal;
    },
  ): Promise<AgentReply> {
    const { body, stream } = sent.carried;
    const leftMs = (this.#options.untilNs - hop.sentNs) / 1e6;
    const headers = { ...sent.headers, ...clientTimeoutHeader(leftMs) };
    // If the previous container's stream fails, the request is aborted with that error. It is not a failure of this
    // container.
    const signal = stream === null ? sent.signal : AbortSignal.any([sent.signal, stream.failed]);
    // Only the first container's request may be sent to another instance. Later, the earlier containers would have to
    // compute again.
    const mayGoElsewhere = this.#options.mayGoElsewhere && hop === this.#options.hops[0];
    // A background request has no waiting client: its own limits replace the limit for the time without data.
    const isStreamed = request.isStreamed || request.bounds !== undefined;
    const { containerPath } = request;
    const invoked = hop.lease ?? hop.target.container;
    const reply = await invoked.invoke({ containerPath, headers, body, signal, mayGoElsewhere, isStreamed });
    hop.status = reply.status;
    if (reply.status >= 200 && reply.status <= 299) return reply;
    const text = await readErrorText(reply.body);
    stream?.failed.throwIfAborted();
    throw containerError(reply.status, text, hop.target.place);
  }

  /**
   * Returns the body for the next container. Short responses are buffered, so that they can be sent again to a
   * restarted container. Longer ones are streamed.
   */
  async #carry(hop: ChainHop, reply: AgentReply, request: InvocationRequest): Promise<CarriedBody> {
    const { responseBytesMax: bytesMax, clock } = this.#options;
    const contentType = replyHeader(reply, "content-type");
    const length = replyLength(reply);
    if (!isValidContentType(contentType)) {
      reply.body.destroy();
      const text = "The container's content type is not valid in the request to the next container";
      throw containerError(502, text, hop.target.place);
    }
    const refusal = () => payloadTooLarge(bytesMax, hop.target.place.containerName);
    if (length !== null && length > bytesMax) {
      reply.body.destroy();
      throw refusal();
    }
    if (length !== null && length <= bufferedBytesMax) {
      const body = await pending(reply, request, length);
      hop.endedNs = clock.monotonicNs();
      return { body, headers: { contentType, byteLength: null }, stream: null, heldBytes: length };
    }
    const stream = new HopStream(reply.body, { bytesMax, tooLong: refusal });
    stream.ended(() => (hop.endedNs = clock.monotonicNs()));
    this.#streams.push({ hop, stream });
    return { body: stream.body, headers: { contentType, byteLength: length }, stream, heldBytes: 0 };
  }

  [Symbol.dispose](): void {
    for (const { stream } of this.#streams) stream[Symbol.dispose]();
  }
}

async function pending(reply: AgentReply, request: InvocationRequest, length: number): Promise<Buffer> {
  try {
    reserveCallMemory(request.memory, length);
    return await readToBuffer(reply.body, length, () => new Error("the body is longer than announced"));
  } catch (error) {
    reply.body.destroy();
    throw error;
  }
}

export function replyHeader(reply: AgentReply, name: string): string | null {
  const value = reply.headers[name];
  return typeof value === "string" ? value : null;
}

/** Returns the content length of a response; null if it has none. */
export function replyLength(reply: AgentReply): number | null {
  const stated = replyHeader(reply, "content-length");
  return stated === null ? null : Number(stated);
}
