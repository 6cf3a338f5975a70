import { Readable } from "node:stream";
import { TokenBucket, TaskGroup, delay, type Clock, type Logger } from "@galatea/base";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { EndpointMirrorMemory } from "./mirror-memory.ts";

/** Sends a request to a shadow variant. */
export type InvokeShadow = (request: InvocationRequest) => Promise<InvocationReply>;

export interface ShadowCallsOptions {
  readonly invoke: InvokeShadow;
  readonly share: EndpointMirrorMemory;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Maximum number of concurrent requests. */
  readonly callsMax: number;
  /** Maximum rate at which the shadow's responses are read. */
  readonly responseBytesPerSecond: number;
}

/** A copied request for a shadow variant. */
export interface MirroredRequest extends Pick<
  InvocationRequest,
  "headers" | "targetModel" | "targetContainer" | "containerPath" | "isStreamed"
> {
  readonly pieces: readonly Buffer[];
}

/**
 * The requests of a shadow variant: copies of those to its production variant. No caller waits for them; their
 * responses are read and discarded, or captured. Requests above the limit are dropped, and a shadow whose responses
 * exceed the rate is read more slowly and gets fewer requests.
 */
export class ShadowCalls implements AsyncDisposable {
  readonly #options: ShadowCallsOptions;
  /** Reading takes CPU time from other requests, and the size of a shadow's responses is unknown in advance. */
  readonly #allowance: TokenBucket;
  readonly #tasks: TaskGroup;
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;

  constructor(options: ShadowCallsOptions) {
    this.#options = options;
    const bytes = options.responseBytesPerSecond;
    this.#allowance = new TokenBucket(options.clock, { bytesPerSecondMax: bytes, burstBytesMax: bytes });
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a request of a shadow variant ended unexpectedly", { error: String(error) });
    });
  }

  /**
   * Sends the copy in a later tick of the event loop. Calls `take` with the response, whose body it may replace; calls
   * `ended` once at the end.
   */
  send(
    request: MirroredRequest,
    then: { readonly take: (reply: InvocationReply) => InvocationReply["body"]; readonly ended: () => void },
  ): void {
    // A buffered response is read before it can be counted: the excess is paid off before the next request.
    if (this.#isClosed || this.#underWay.size >= this.#options.callsMax || this.#allowance.waitMs > 0) {
      this.#options.share.lose("shadow-busy");
      return then.ended();
    }
    const aborter = new AbortController();
    this.#underWay.add(aborter);
    this.#tasks.run(async () => {
      try {
        await new Promise<void>((resolve) => setImmediate(resolve));
        await this.#send(request, aborter.signal, then.take);
      } catch {
        // The shadow's own metrics count its failures.
      } finally {
        this.#underWay.delete(aborter);
        then.ended();
      }
    });
  }

  /** Cancels the requests in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const aborter of this.#underWay) aborter.abort(new Error("the shadow variant ends"));
    await this.#tasks.waitForTasks();
    await this.#tasks[Symbol.asyncDispose]();
  }

  async #send(
    { headers, pieces, ...targets }: MirroredRequest,
    signal: AbortSignal,
    take: (reply: InvocationReply) => InvocationReply["body"],
  ): Promise<void> {
    signal.throwIfAborted();
    const { invoke: ask, share, clock } = this.#options;
    using memory = share.memory();
    const [only = Buffer.alloc(0)] = pieces;
    const body = () => Promise.resolve(pieces.length < 2 ? only : Readable.from(pieces, { objectMode: false }));
    const receivedNs = clock.monotonicNs();
    const shadowRequest = { headers, ...targets, targetVariant: null, body, memory, receivedNs, signal };
    const reply = await ask(shadowRequest).catch((error: unknown) => {
      // The bytes of a response that was too long, or broke off, are counted.
      this.#allowance.consume(memory.bytes);
      throw error;
    });
    const answer = take(reply);
    try {
      if (Buffer.isBuffer(answer)) this.#allowance.consume(answer.length);
      else await this.#readToItsEnd(answer, reply, signal);
    } finally {
      reply.done();
    }
  }

  /** Resolves when a body has ended in any way. */
  async #readToItsEnd(body: Readable, reply: InvocationReply, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const allowance = this.#allowance;
    const leave = () => body.destroy();
    const read = (piece: Buffer) => {
      allowance.consume(piece.length);
      const { waitMs } = allowance;
      if (waitMs === 0) return;
      body.pause();
      delay(clock, waitMs, signal).then(
        () => body.resume(),
        // The body is not read any further then.
        () => {},
      );
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      if (signal.aborted) leave();
      await new Promise<void>((resolve) => {
        body.once("data", reply.onStart).on("data", read).on("error", reply.failed).once("close", resolve);
        if (body.closed) resolve();
      });
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }
}
