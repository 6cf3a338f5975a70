import { InferenceError, isMemoryReason, type ByteLease } from "@galatea/base";
import type { Exchange } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import { statusOf } from "./reply.ts";

/**
 * Receives a body as it arrives. `write` may throw: the rest of the body is then read and dropped before the error is reported. After a
 * lack of memory nothing more is read.
 */
export interface BodySink {
  write(chunk: Buffer): void;
  /** Called before a failure is reported, to release what was written. */
  discard?(): void;
}

/** An error with another status than its code has (413 for a body over its limit). */
export class BodyError extends InferenceError {
  readonly status: number;
  /** True if the rest of the body is not read: the connection ends after the response. */
  readonly closes: boolean;

  /** `refusal`: the error whose code and reason are kept. */
  constructor(status: number, message: string, closes: boolean, refusal: InferenceError | null = null) {
    super(refusal?.code ?? "INVALID_ARG", message, { cause: refusal, reason: refusal?.reason ?? null });
    this.status = status;
    this.closes = closes;
  }
}

/** Returns the error that is reported while a body is read: a lack of memory ends the reading. */
function asBodyError(error: unknown): unknown {
  if (!(error instanceof InferenceError) || !isMemoryReason(error.reason)) return error;
  return new BodyError(statusOf(error), error.message, true, error);
}

/** Takes memory for the bytes of a body before they are read. Throws BodyError. */
export function admit(exchange: Exchange, bytes: number): void {
  admitting(() => exchange.memory.grow(bytes));
}

/** Calls `take`, which takes memory for an unread body. Converts a lack of memory to a BodyError. */
export function admitting<Made>(take: () => Made): Made {
  try {
    return take();
  } catch (error) {
    throw asBodyError(error);
  }
}

/** Returns Content-Length as a number, -1 for a chunked body, 0 for none. Node has rejected malformed ones. */
export function declaredLength(exchange: Exchange): number {
  const { headers } = exchange.request;
  if (headers["transfer-encoding"] !== undefined) return -1;
  const declared = headers["content-length"];
  return declared === undefined ? 0 : Number(declared);
}

/**
 * Passes the whole body to `sink` and resolves with it at the body's end. Rejects with BodyError over a limit, with the sink's own error
 * after the body was read, and with the signal's reason when the client is gone.
 */
export function readBody<Sink extends BodySink>(exchange: Exchange, limits: HttpLimits, sink: Sink): Promise<Sink> {
  const { request, response } = exchange;
  const chunked = request.headers["transfer-encoding"] !== undefined;
  const declared = declaredLength(exchange);
  if (declared > limits.bodyBytesMax) {
    return Promise.reject(tooLarge(declared, limits));
  }
  return new Promise((resolve, reject) => {
    let bodyBytes = 0;
    let chunkCount = 0;
    let failure: unknown;
    const fail = (error: unknown) => {
      sink.discard?.();
      reject(error);
    };
    request.on("data", (chunk: Buffer) => {
      bodyBytes += chunk.length;
      if (chunked && ++chunkCount > limits.chunksMax) {
        return abandon(
          new BodyError(
            400,
            `Chunked request body exceeds maximum of ${limits.chunksMax} non-empty chunks. Send fewer or larger HTTP chunks.`,
            true,
          ),
        );
      }
      if (bodyBytes > limits.bodyBytesMax) return abandon(tooLarge(bodyBytes, limits));
      if (failure !== undefined) return;
      try {
        sink.write(chunk);
      } catch (error) {
        failure = asBodyError(error);
        if (failure instanceof BodyError && failure.closes) abandon(failure);
      }
    });
    request.on("end", () => (failure === undefined ? resolve(sink) : fail(failure)));
    // The request emits an error when its connection ends early. Readers of the body get it here, others by the signal.
    request.on("error", (error) => fail(InferenceError.from(exchange.signal.reason ?? error)));
    const abandon = (error: BodyError) => {
      request.removeAllListeners("data");
      request.pause();
      response.shouldKeepAlive = false;
      fail(error);
    };
  });
}

function tooLarge(byteLength: number, limits: HttpLimits): BodyError {
  return new BodyError(
    413,
    `request body of ${byteLength} bytes exceeds the maximum allowed body size of ${limits.bodyBytesMax} bytes`,
    true,
  );
}

const discardedBytesMin = 16 * 1024;

/**
 * Frees the memory of a consumed chunk or body at once; it must not be used again. The garbage collector does not see the size of these
 * chunks until they add up to 64 MiB, and then marks the whole heap: a tenth of the server's time with tensors of 1 MB.
 */
export function discardChunk(chunk: Buffer): void {
  const { buffer } = chunk;
  if (chunk.byteLength < discardedBytesMin || chunk.byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Frees the memory of chunks as `discardChunk` does. Each has its own buffer, which it need not fill. */
export function discardChunks(pieces: readonly Buffer[]): void {
  for (const { buffer } of pieces) if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const emptyBody = Buffer.alloc(0);

/**
 * Reads the whole body to one buffer. A body in one chunk is not copied; otherwise the buffer doubles as bytes arrive, so that a client
 * that announces gigabytes and sends little costs little.
 */
export async function readWholeBody(exchange: Exchange, limits: HttpLimits): Promise<Buffer> {
  return (await gatherBody(exchange, limits)).bytes();
}

/**
 * Reads the whole body, for callers that discard it explicitly. Throws BodyError at once when there is no memory for its announced
 * length.
 */
export function gatherBody(exchange: Exchange, limits: HttpLimits): Promise<GatheredBody> {
  const declared = declaredLength(exchange);
  if (declared === 0) return Promise.resolve(new GatheredBody(0, exchange.memory));
  if (declared > 0 && declared <= limits.bodyBytesMax) admit(exchange, declared);
  return readBody(exchange, limits, new GatheredBody(declared, exchange.memory));
}

export class GatheredBody implements BodySink {
  readonly #declared: number;
  readonly #memory: ByteLease;
  #buffer: Buffer = emptyBody;
  #used = 0;

  /**
   * `declared` is -1 for an unknown length; then the buffer's bytes are taken from `memory` as it grows, otherwise they were taken
   * before.
   */
  constructor(declared: number, memory: ByteLease) {
    this.#declared = declared;
    this.#memory = memory;
  }

  bytes(): Buffer {
    return this.#used === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, this.#used);
  }

  write(chunk: Buffer): void {
    if (this.#used === 0 && chunk.length === this.#declared) {
      this.#buffer = chunk;
      this.#used = chunk.length;
      return;
    }
    const needed = this.#used + chunk.length;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(chunk, this.#used);
    this.#used = needed;
    discardChunk(chunk);
  }

  #grow(needed: number): void {
    const doubled = Math.max(needed, 2 * this.#buffer.length, 64 * 1024);
    const length = this.#declared >= needed ? Math.min(doubled, this.#declared) : doubled;
    // Both buffers exist while the bytes are copied.
    if (this.#declared === -1) this.#memory.grow(length);
    const grown = Buffer.allocUnsafeSlow(length);
    grown.set(this.#buffer.subarray(0, this.#used));
    if (this.#declared === -1) this.#memory.shrinkBy(this.#buffer.length);
    discardChunk(this.#buffer);
    this.#buffer = grown;
  }

  /** Frees the memory at once instead of waiting for the garbage collector. The body must not be used again. */
  discard(): void {
    discardChunk(this.#buffer);
    this.#buffer = emptyBody;
    this.#used = 0;
  }
}
