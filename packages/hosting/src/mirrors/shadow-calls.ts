import { Readable } from "node:stream";
import { ByteRate, TaskGroup, delay, type Clock, type Logger } from "@galatea/base";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { MirrorShare } from "./mirror-account.ts";

/** Asks a shadow variant. */
export type AskShadow = (request: InvocationRequest) => Promise<InvocationReply>;

export interface ShadowCallsOptions {
  readonly ask: AskShadow;
  readonly share: MirrorShare;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Under way at a time. */
  readonly callsMax: number;
  /** Of what the shadow answers, read in a second. */
  readonly answerBytesPerSecond: number;
}

/** A request as it came, for a shadow variant. */
export interface MirroredRequest extends Pick<
  InvocationRequest,
  "headers" | "targetModel" | "targetContainer" | "containerPath" | "isStreamed"
> {
  readonly pieces: readonly Buffer[];
}

/**
 * The requests of a shadow variant: copies of those that its production variant was asked. Nobody waits for them, and what they are
 * answered is read and forgotten, or captured. Those that are too many are given up, and a shadow that answers more than so much a second
 * is read more slowly, and asked less.
 */
export class ShadowCalls implements AsyncDisposable {
  readonly #options: ShadowCallsOptions;
  /** Reading takes the time of those who wait for answers, and how much a shadow answers is its own affair. */
  readonly #allowance: ByteRate;
  readonly #tasks: TaskGroup;
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;

  constructor(options: ShadowCallsOptions) {
    this.#options = options;
    const bytes = options.answerBytesPerSecond;
    this.#allowance = new ByteRate(options.clock, { bytesPerSecondMax: bytes, burstBytesMax: bytes });
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a request of a shadow variant ended unexpectedly", { error: String(error) });
    });
  }

  /**
   * Sends the copy after what the event loop has to do now. `take` is given the answer, whose body it replaces or leaves; `ended` is
   * called once in the end.
   */
  send(
    request: MirroredRequest,
    then: { readonly take: (reply: InvocationReply) => InvocationReply["body"]; readonly ended: () => void },
  ): void {
    // What a shadow answers whole is there before it can be counted: it owes that, and is asked nothing while it does.
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
        // What the shadow failed with is counted by its own metrics.
      } finally {
        this.#underWay.delete(aborter);
        then.ended();
      }
    });
  }

  /** Those under way are given up. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const aborter of this.#underWay) aborter.abort(new Error("the shadow variant ends"));
    await this.#tasks.settled();
    await this.#tasks[Symbol.asyncDispose]();
  }

  async #send(
    { headers, pieces, ...targets }: MirroredRequest,
    signal: AbortSignal,
    take: (reply: InvocationReply) => InvocationReply["body"],
  ): Promise<void> {
    signal.throwIfAborted();
    const { ask, share, clock } = this.#options;
    using memory = share.memory();
    const [only = Buffer.alloc(0)] = pieces;
    const body = () => Promise.resolve(pieces.length < 2 ? only : Readable.from(pieces, { objectMode: false }));
    const receivedNs = clock.monotonicNs();
    const asked = { headers, ...targets, targetVariant: null, body, memory, receivedNs, signal };
    const reply = await ask(asked).catch((error: unknown) => {
      // What came of an answer that was too long, or broke off.
      this.#allowance.take(memory.bytes);
      throw error;
    });
    const answer = take(reply);
    try {
      if (Buffer.isBuffer(answer)) this.#allowance.take(answer.length);
      else await this.#readToItsEnd(answer, reply, signal);
    } finally {
      reply.done();
    }
  }

  /** Resolves when a body is over, whichever way. */
  async #readToItsEnd(body: Readable, reply: InvocationReply, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const allowance = this.#allowance;
    const leave = () => body.destroy();
    const read = (piece: Buffer) => {
      allowance.take(piece.length);
      const { waitMs } = allowance;
      if (waitMs === 0) return;
      body.pause();
      delay(clock, waitMs, signal).then(
        () => body.resume(),
        // It is left then.
        () => {},
      );
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      if (signal.aborted) leave();
      await new Promise<void>((resolve) => {
        body.once("data", reply.begun).on("data", read).on("error", reply.failed).once("close", resolve);
        if (body.closed) resolve();
      });
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }
}
