import type { Readable } from "node:stream";
import { Pool } from "undici";
import { openDeadline, readToBuffer, type Clock } from "@galatea/base";

/** An error response of the engine, with its HTTP status and message. */
export class EngineError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "EngineError";
    this.status = status;
  }
}

/** The error if the engine does not respond: it is not running, it hangs, or the platform may not open the socket. */
export class EngineUnavailable extends Error {
  constructor(address: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`the container engine at ${address} does not respond: ${why}`, { cause });
    this.name = "EngineUnavailable";
  }
}

export interface EngineRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path and query of the request, without an API version. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of the request. An object is sent as JSON, a stream as a tar archive. */
  readonly body?: object | Readable;
  readonly signal?: AbortSignal;
  /** Time limit of `call` in milliseconds; null for none. */
  readonly answerMsMax?: number | null;
}

/**
 * Default time limit of `call` in milliseconds. It is this long because the removal of a large container takes seconds.
 */
const answerMsMaxDefault = 60_000;
const bodyBytesMax = 16 * 2 ** 20;

/**
 * A client of a Docker-compatible API (Docker, Podman) over a Unix socket. Paths contain no API version, so that the
 * engine uses its newest version. A fixed version would fail when a new release of the engine drops it.
 */
export class EngineClient implements AsyncDisposable {
  /** The engine's socket, such as `unix:///var/run/docker.sock`. */
  readonly address: string;
  readonly #pool: Pool;
  readonly #clock: Clock;

  /** `address` must have the form `unix:///path`. */
  constructor(address: string, clock: Clock) {
    this.address = address;
    this.#clock = clock;
    // The pool has no maximum: each running container uses two connections, one for its log and one that waits for its
    // exit.
    this.#pool = new Pool("http://engine", {
      connect: { socketPath: address.replace(/^unix:\/\//, "") },
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Returns the parsed response. Rejects with EngineError, or with EngineUnavailable if the engine does not respond
   * within the time limit.
   */
  async call<Response>(request: EngineRequest): Promise<Response> {
    const { answerMsMax: afterMs = answerMsMaxDefault, signal = null } = request;
    const read = async (limit: AbortSignal | null) => {
      const text = await this.#text(await this.stream({ ...request, ...(limit && { signal: limit }) }), limit);
      return (text === "" ? {} : JSON.parse(text)) as Response;
    };
    if (afterMs === null) return await read(signal);
    const createError = () => new EngineUnavailable(this.address, `no response within ${afterMs / 1000} s`);
    using limit = openDeadline({ clock: this.#clock, afterMs, signal, createError });
    return await read(limit.signal);
  }

  /**
   * Returns the response body as a stream, without a time limit. The caller must read the stream to its end or destroy
   * it.
   */
  async stream({ method, path, headers = {}, body, signal }: EngineRequest): Promise<Readable> {
    const isStream = body !== undefined && "pipe" in body;
    const type = body === undefined ? {} : { "content-type": isStream ? "application/x-tar" : "application/json" };
    let reply;
    try {
      reply = await this.#pool.request({
        method,
        path,
        headers: { ...type, ...headers },
        body: body === undefined ? null : isStream ? body : JSON.stringify(body),
        ...(signal && { signal }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw new EngineUnavailable(this.address, error);
    }
    if (reply.statusCode < 400) return reply.body;
    throw new EngineError(reply.statusCode, messageIn(await this.#text(reply.body, signal ?? null)));
  }

  async #text(body: Readable, signal: AbortSignal | null): Promise<string> {
    try {
      const tooLong = () => new Error(`its response is longer than ${bodyBytesMax} bytes`);
      return (await readToBuffer(body, bodyBytesMax, tooLong)).toString("utf8");
    } catch (error) {
      signal?.throwIfAborted();
      throw new EngineUnavailable(this.address, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }
}

/** Returns the message of an error response. Docker and Podman both send `{"message": "..."}`. */
function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    return typeof message === "string" ? message : text;
  } catch {
    return text;
  }
}
