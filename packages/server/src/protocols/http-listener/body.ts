import { InferenceError, isMemoryReason, type ByteLease } from "@galatea/base";
import type { Exchange } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import { httpStatusOf } from "./reply.ts";

/**
 * Receives a body as it arrives. If `write` throws, the remaining body is read and discarded before the error is reported, except after an
 * out-of-memory error.
 */
export interface BodySink {
  write(chunk: Buffer): void;
  /** Called before a failure is reported. Releases what was written so far. */
  discard?(): void;
}

/** An error of reading a body, with its own HTTP status, such as 413 for a body over the limit. */
export class BodyError extends InferenceError {
  readonly status: number;
  /** True if the remaining body is not read; the connection is then closed after the response. */
  readonly closes: boolean;

  /** `refusal` is the original error, whose code and reason are kept. */
  constructor(status: number, message: string, closes: boolean, refusal: InferenceError | null = null) {
    super(refusal?.code ?? "INVALID_ARG", message, { cause: refusal, reason: refusal?.reason ?? null });
    this.status = status;
    this.closes = closes;
  }
}

/** Returns the error that is reported for a failure to read a body. An out-of-memory error also closes the connection. */
function asBodyError(error: unknown): unknown {
  if (!(error instanceof InferenceError) || !isMemoryReason(error.reason)) return error;
  return new BodyError(httpStatusOf(error), error.message, true, error);
}

/** Charges a body to the exchange's memory lease before it is read. Throws BodyError when there is not enough memory. */
export function reserveBodyMemory(exchange: Exchange, bytes: number): void {
  asBodyMemory(() => exchange.memory.grow(bytes));
}

/** Runs `take`, which allocates memory for an unread body, and converts an out-of-memory error to a BodyError. */
export function asBodyMemory<Made>(take: () => Made): Made {
  try {
    return take();
  } catch (error) {
    throw asBodyError(error);
  }
}

/** Returns Content-Length as a number; -1 for a chunked body, 0 for none. Node has rejected malformed values. */
export function declaredLength(exchange: Exchange): number {
  const { headers } = exchange.request;
  if (headers["transfer-encoding"] !== undefined) return -1;
  const declared = headers["content-length"];
  return declared === undefined ? 0 : Number(declared);
}

/**
 * Passes the body to `sink` as it arrives. Resolves with the sink at the end of the body. Rejects with BodyError if a limit is exceeded,
 * with the sink's own error after the body was read, and with the signal's reason if the client has disconnected.
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
    // If a connection ends early, Node reports an error on the request. Without this listener, the process would end.
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
 * Frees the memory of a consumed chunk or body at once; the chunk must not be used again. The garbage collector frees such chunks only
 * after they add up to 64 MiB, and then marks the whole heap, which took a tenth of the server's time with tensors of 1 MB.
 */
export function discardChunk(chunk: Buffer): void {
  const { buffer } = chunk;
  if (chunk.byteLength < discardedBytesMin || chunk.byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Frees the memory of chunks as `discardChunk` does. Each chunk must have its own buffer. */
export function discardChunks(chunks: readonly Buffer[]): void {
  for (const { buffer } of chunks) if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const emptyBody = Buffer.alloc(0);

/**
 * Reads the body to one buffer. A body that arrives in one chunk is not copied. Otherwise the buffer doubles as bytes arrive, so that a
 * large announced length alone allocates nothing.
 */
export async function readBodyToBuffer(exchange: Exchange, limits: HttpLimits): Promise<Buffer> {
  return (await bufferBody(exchange, limits)).bytes();
}

/**
 * Reads the body to a buffer that the caller discards explicitly. Throws BodyError at once if there is not enough memory for the announced
 * length.
 */
export function bufferBody(exchange: Exchange, limits: HttpLimits): Promise<BufferedBody> {
  const declared = declaredLength(exchange);
  if (declared === 0) return Promise.resolve(new BufferedBody(0, exchange.memory));
  if (declared > 0 && declared <= limits.bodyBytesMax) reserveBodyMemory(exchange, declared);
  return readBody(exchange, limits, new BufferedBody(declared, exchange.memory));
}

export class BufferedBody implements BodySink {
  readonly #declared: number;
  readonly #memory: ByteLease;
  #buffer: Buffer = emptyBody;
  #used = 0;

  /**
   * `declared` is the announced length, which the caller has already charged to `memory`. If it is -1 (unknown), this object charges the
   * buffer as it grows.
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
    // During the copy, both the old and the new buffer exist.
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
