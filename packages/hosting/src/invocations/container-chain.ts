import type { Readable } from "node:stream";
import { readToBuffer, takeForCall, type Clock } from "@galatea/base";
import { errorText, type AgentContainer, type AgentReply, type AcquiredModel } from "../instance-agent/index.ts";
import { canBeSent, hopHeaders, type CarriedHeaders } from "./hop-headers.ts";
import { HopStream } from "./hop-stream.ts";
import { heldBytesMax, type InvocationRequest } from "./invocation.ts";
import { containerError, tooLong, type InvocationPlace } from "./invocation-errors.ts";

/** A container of an instance, and what errors say of it. */
export interface InvokedContainer {
  readonly container: AgentContainer;
  readonly place: InvocationPlace;
  /** Where the models of a multi-model container come from; empty for others. */
  readonly modelDataUrl: string;
}

/** Returns the header that tells a container how long its caller waits, in milliseconds: after that it may end the call's execution. */
export function callLimitHeader(limitMs: number): Readonly<Record<string, string>> {
  return { "x-galatea-call-limit-ms": String(limitMs) };
}

/** One container on the way of a request. */
export interface Hop {
  readonly target: InvokedContainer;
  /** Its model, where it has many and the model is loaded. */
  lease: AcquiredModel | null;
  /** Zero until it has answered, or has failed to. */
  status: number;
  /** Zero until the request has left for it. */
  sentNs: number;
  /** Zero until the last of its answer has come. */
  endedNs: number;
}

export function beginHop(target: InvokedContainer): Hop {
  return { target, lease: null, status: 0, sentNs: 0, endedNs: 0 };
}

export interface ChainOptions {
  readonly hops: readonly Hop[];
  /** Of what each container answers to the next. */
  readonly answerBytesMax: number;
  readonly clock: Clock;
  /** Whether another instance can be asked while nothing has been computed. */
  readonly mayGoElsewhere: boolean;
}

interface CarriedBody {
  readonly body: Buffer | Readable;
  readonly headers: CarriedHeaders | null;
  /** Null where the body is not one that streams from another container. */
  readonly stream: HopStream | null;
  /** Taken for it from the request's memory. */
  readonly heldBytes: number;
}

/** One request on its way through containers: what each answers is what the next one is asked. To be disposed when it is over. */
export class ContainerChain implements Disposable {
  readonly #options: ChainOptions;
  readonly #streams: { readonly hop: Hop; readonly stream: HopStream }[] = [];
  #at: Hop | null = null;

  constructor(options: ChainOptions) {
    this.#options = options;
  }

  /** The container that is waited for: the one whose answer does not come, comes slowly, or broke off. Null before the first is asked. */
  get awaited(): Hop | null {
    return this.#streams.find(({ stream }) => stream.isAwaited)?.hop ?? this.#at;
  }

  /** The last container's answer, which is a success. Rejects with what an earlier one broke with, or its error. */
  async send(request: InvocationRequest, first: Buffer | Readable, signal: AbortSignal): Promise<AgentReply> {
    const { hops, clock } = this.#options;
    const last = hops.at(-1);
    let carried: CarriedBody = { body: first, headers: null, stream: null, heldBytes: 0 };
    for (const hop of hops) {
      this.#at = hop;
      const isLast = hop === last;
      const isMultiModel = hop.target.container.view.models !== null;
      // One container alone is sent what came.
      const headers =
        hops.length === 1
          ? request.headers
          : hopHeaders(request.headers, { isLast, isMultiModel, carried: carried.headers });
      hop.sentNs = clock.monotonicNs();
      const reply = await this.#ask(hop, request, { headers, carried, signal });
      request.memory.shrinkBy(carried.heldBytes);
      if (isLast) return reply;
      carried = await this.#carry(hop, reply, request);
    }
    throw new Error("a model without a container");
  }

  async #ask(
    hop: Hop,
    request: InvocationRequest,
    sent: {
      readonly headers: Readonly<Record<string, string>>;
      readonly carried: CarriedBody;
      readonly signal: AbortSignal;
    },
  ): Promise<AgentReply> {
    const { headers, carried } = sent;
    const { body, stream } = carried;
    // A body that breaks off is no failure of the container that it was for.
    const signal = stream === null ? sent.signal : AbortSignal.any([sent.signal, stream.failed]);
    // What one container has answered is not computed again.
    const mayGoElsewhere = this.#options.mayGoElsewhere && hop === this.#options.hops[0];
    // Nobody waits for an answer with bounds of its own: it may be silent for as long as they say.
    const isStreamed = request.isStreamed || request.bounds !== undefined;
    const { containerPath } = request;
    const invoked = hop.lease ?? hop.target.container;
    const reply = await invoked.invoke({ containerPath, headers, body, signal, mayGoElsewhere, isStreamed });
    hop.status = reply.status;
    if (reply.status >= 200 && reply.status <= 299) return reply;
    const text = await errorText(reply.body);
    stream?.failed.throwIfAborted();
    throw containerError(reply.status, text, hop.target.place);
  }

  /** Short answers are held, so that they can be asked again of a container that is started again; others stream. */
  async #carry(hop: Hop, reply: AgentReply, request: InvocationRequest): Promise<CarriedBody> {
    const { answerBytesMax: bytesMax, clock } = this.#options;
    const contentType = replyHeader(reply, "content-type");
    const length = replyLength(reply);
    if (!canBeSent(contentType)) {
      reply.body.destroy();
      const text = "The container's content type is none that the next container could be sent";
      throw containerError(502, text, hop.target.place);
    }
    const refusal = () => tooLong(bytesMax, hop.target.place.containerName);
    if (length !== null && length > bytesMax) {
      reply.body.destroy();
      throw refusal();
    }
    if (length !== null && length <= heldBytesMax) {
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
    takeForCall(request.memory, length);
    return await readToBuffer(reply.body, length, () => new Error("more came than was announced"));
  } catch (error) {
    reply.body.destroy();
    throw error;
  }
}

export function replyHeader(reply: AgentReply, name: string): string | null {
  const value = reply.headers[name];
  return typeof value === "string" ? value : null;
}

/** Null where the answer does not say it. */
export function replyLength(reply: AgentReply): number | null {
  const stated = replyHeader(reply, "content-length");
  return stated === null ? null : Number(stated);
}
