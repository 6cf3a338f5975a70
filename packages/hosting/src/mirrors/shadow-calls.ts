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
  /** Maximum rate at which responses of the shadow variant are read, in bytes per second. */
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
 * Sends copies of requests to a shadow variant. No caller waits for the shadow's responses, which are discarded or
 * captured. Requests above `callsMax` are dropped. If responses exceed the rate limit, they are read more slowly and
 * fewer requests are sent.
 */
export class ShadowCalls implements AsyncDisposable {
  readonly #options: ShadowCallsOptions;
  /**
   * Limits the rate at which responses are read. Reading uses CPU time, and the size of a response is unknown in
   * advance.
   */
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
   * Sends a copied request in a later tick of the event loop. Calls `take` with the response; `take` returns the body
   * to read, for example one that is copied while it is read. Calls `ended` once at the end.
   */
  send(
    request: MirroredRequest,
    then: { readonly take: (reply: InvocationReply) => InvocationReply["body"]; readonly ended: () => void },
  ): void {
    // A buffered response is counted only after it was read. If it exceeded the rate, requests are dropped until the
    // excess is paid off.
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
    const { invoke: call, share, clock } = this.#options;
    using memory = share.memory();
    const [only = Buffer.alloc(0)] = pieces;
    const body = () => Promise.resolve(pieces.length < 2 ? only : Readable.from(pieces, { objectMode: false }));
    const receivedNs = clock.monotonicNs();
    const shadowRequest = { headers, ...targets, targetVariant: null, body, memory, receivedNs, signal };
    const reply = await call(shadowRequest).catch((error: unknown) => {
      // Bytes of a response that was too long or ended early also count towards the rate.
      this.#allowance.consume(memory.bytes);
      throw error;
    });
    const response = take(reply);
    try {
      if (Buffer.isBuffer(response)) this.#allowance.consume(response.length);
      else await this.#readToItsEnd(response, reply, signal);
    } finally {
      reply.done();
    }
  }

  /** Reads and discards a body. Resolves when the body has ended, failed or been destroyed. */
  async #readToItsEnd(body: Readable, reply: InvocationReply, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const allowance = this.#allowance;
    const disconnect = () => body.destroy();
    const read = (chunk: Buffer) => {
      allowance.consume(chunk.length);
      const { waitMs } = allowance;
      if (waitMs === 0) return;
      body.pause();
      delay(clock, waitMs, signal).then(
        () => body.resume(),
        // After an abort, the body is destroyed and must not be resumed.
        () => {},
      );
    };
    signal.addEventListener("abort", disconnect, { once: true });
    try {
      if (signal.aborted) disconnect();
      await new Promise<void>((resolve) => {
        body.once("data", reply.onStart).on("data", read).on("error", reply.failed).once("close", resolve);
        if (body.closed) resolve();
      });
    } finally {
      signal.removeEventListener("abort", disconnect);
    }
  }
}
