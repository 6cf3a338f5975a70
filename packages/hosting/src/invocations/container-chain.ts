import type { Readable } from "node:stream";
import { readToBuffer, reserveCallMemory, type Clock } from "@galatea/base";
import { readErrorText, type AgentContainer, type AgentReply, type AcquiredModel } from "../instance-agent/index.ts";
import { isValidContentType, hopHeaders, type ChainedHeaders } from "./hop-headers.ts";
import { HopStream } from "./hop-stream.ts";
import { bufferedBytesMax, type InvocationRequest } from "./invocation.ts";
import { containerError, payloadTooLarge, type InvocationSource } from "./invocation-errors.ts";

/** A container of an instance, with its description for errors. */
export interface InvocationTarget {
  readonly container: AgentContainer;
  readonly place: InvocationSource;
  /** Location of a multi-model container's models; empty for others. */
  readonly modelDataUrl: string;
}

/** Returns the header with the time that the caller of a container still waits: after that it may end the call's execution. */
export function clientTimeoutHeader(limitMs: number): Readonly<Record<string, string>> {
  return { "x-galatea-call-limit-ms": String(Math.max(1, Math.ceil(limitMs))) };
}

/** One container on the path of a request. */
export interface ChainHop {
  readonly target: InvocationTarget;
  /** Its loaded model, for a multi-model container. */
  lease: AcquiredModel | null;
  /** Zero until it has responded or failed. */
  status: number;
  /** Zero until the request was sent to it. */
  sentNs: number;
  /** Zero until its response is complete. */
  endedNs: number;
}

export function newChainHop(target: InvocationTarget): ChainHop {
  return { target, lease: null, status: 0, sentNs: 0, endedNs: 0 };
}

export interface ContainerChainOptions {
  readonly hops: readonly ChainHop[];
  /** Maximum size of the response of each container to the next. */
  readonly responseBytesMax: number;
  /** The monotonic time at which the caller stops waiting. */
  readonly untilNs: number;
  readonly clock: Clock;
  /** True if another instance can take the request before anything has been computed. */
  readonly mayGoElsewhere: boolean;
}

interface CarriedBody {
  readonly body: Buffer | Readable;
  readonly headers: ChainedHeaders | null;
  /** Null for a body that does not stream from another container. */
  readonly stream: HopStream | null;
  /** Bytes of the request's memory that it uses. */
  readonly heldBytes: number;
}

/**
 * One request on its path through containers: the response of each is the request to the next. The caller disposes it
 * at the end.
 */
export class ContainerChain implements Disposable {
  readonly #options: ContainerChainOptions;
  readonly #streams: { readonly hop: ChainHop; readonly stream: HopStream }[] = [];
  #at: ChainHop | null = null;

  constructor(options: ContainerChainOptions) {
    this.#options = options;
  }

  /**
   * The container that the request waits for: its response is missing, slow or cut short. Null before the first
   * request.
   */
  get awaited(): ChainHop | null {
    return this.#streams.find(({ stream }) => stream.isAwaited)?.hop ?? this.#at;
  }

  /**
   * Returns the last container's successful response. Rejects with the failure or the error response of an earlier one.
   */
  async send(request: InvocationRequest, first: Buffer | Readable, signal: AbortSignal): Promise<AgentReply> {
    const { hops, clock } = this.#options;
    const last = hops.at(-1);
    let carried: CarriedBody = { body: first, headers: null, stream: null, heldBytes: 0 };
    for (const hop of hops) {
      this.#at = hop;
      const isLast = hop === last;
      const isMultiModel = hop.target.container.view.models !== null;
      // A single container gets all headers.
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
    // A body that breaks off is no failure of the container that receives it.
    const signal = stream === null ? sent.signal : AbortSignal.any([sent.signal, stream.failed]);
    // A response of one container is not computed again.
    const mayGoElsewhere = this.#options.mayGoElsewhere && hop === this.#options.hops[0];
    // A response with its own bounds has no waiting caller: the bounds alone limit the time without data.
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

  /** Buffers short responses, so that they can be sent again to a restarted container; others stream. */
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
      const body = await held(reply, request, length);
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

async function held(reply: AgentReply, request: InvocationRequest, length: number): Promise<Buffer> {
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

/** Returns null if the response has no length. */
export function replyLength(reply: AgentReply): number | null {
  const stated = replyHeader(reply, "content-length");
  return stated === null ? null : Number(stated);
}
