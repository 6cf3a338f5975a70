import type { Readable } from "node:stream";
import { Pool, type Dispatcher } from "undici";
import { openDeadline, unreachable, type Clock } from "@galatea/base";
import {
  ContainerEndedError,
  type ListedModel,
  type ModelLoadReply,
  type ModelContainer,
} from "../model-cache/index.ts";
import { BufferedReplyHandler, type BufferedReply, type BufferedReplyOptions } from "./buffered-reply.ts";
import type { InstanceAddress } from "./model-host.ts";

export interface ContainerClientLimits {
  readonly connectionsMax: number;
  /**
   * Maximum number of connections for streamed responses. They are separate, because long streams would otherwise block
   * other requests.
   */
  readonly streamConnectionsMax: number;
  readonly connectMsMax: number;
  readonly pingMsMax: number;
  /** Maximum time without progress, in milliseconds. The caller's signal limits the total time of a response. */
  readonly stalledMsMax: number;
  readonly keepAliveMs: number;
  /** Maximum time of loading or unloading a model, in milliseconds. SageMaker allows 360 s. */
  readonly loadMsMax: number;
}

export const containerLimits: ContainerClientLimits = {
  connectionsMax: 256,
  streamConnectionsMax: 512,
  connectMsMax: 2000,
  pingMsMax: 2000,
  stalledMsMax: 60_000,
  keepAliveMs: 75_000,
  loadMsMax: 360_000,
};

export interface ContainerRequest {
  /** Path on the container: `/invocations` or `/models/{id}/invoke`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | Dispatcher.DispatchOptions["body"];
  /** True for a streamed response: it has no limit for the time without data except the signal. */
  readonly isStreamed: boolean;
  readonly signal: AbortSignal;
}

export interface ContainerReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The caller must read the body to its end or destroy it. */
  readonly body: Dispatcher.ResponseData["body"];
}

/** A request whose response is buffered. */
export interface BufferedRequest extends BufferedReplyOptions {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The error that `admit` throws to reject a response. It does not mark the container as unhealthy. */
export class ResponseRejected extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ResponseRejected";
  }
}

/** Maximum size of a container's error response that is passed to the client. */
export const errorTextBytesMax = 64 * 1024;

/** Response header with the bytes of memory that a load has added. Only the platform's own server sends it. */
const memoryHeader = "x-galatea-model-bytes";

/**
 * Response header of a ping with the kinds of isolation that the container cannot apply. Only the platform's own server
 * sends it.
 */
const unconfinedHeader = "x-galatea-unconfined";
/** Limits for the contents of `unconfinedHeader`: any container may send the header. */
const unconfinedRowsMax = 16;
const unconfinedCharsMax = 500;

/** Maximum number of pages in which a container lists its models. Model servers have 100 models on a page. */
const listPagesMax = 1000;

interface ModelListPage {
  readonly models: readonly { readonly modelName: string }[];
  /** Absent or empty on the last page. */
  readonly nextPageToken?: string;
}

/** Codes of errors that occur before a request is sent: there was no connection, or it was already closed. */
const neverSent = new Set(["ECONNREFUSED", "ENOENT", "EPIPE"]);

/** Code of the error of a response body whose reader destroyed it. */
const droppedCode = "UND_ERR_ABORTED";

/** Reasons why kinds of isolation are missing, by kind. */
export type MissingIsolation = Readonly<Record<string, string>>;

/** A client of the container contract over persistent connections. */
export class ContainerClient implements ModelContainer, AsyncDisposable {
  readonly #pool: Pool;
  readonly #streams: Pool;
  /** A separate connection for pings, because requests may occupy all connections of the other pools. */
  readonly #pings: Pool;
  readonly #limits: ContainerClientLimits;
  readonly #clock: Clock;
  readonly #onChanged: () => void;
  readonly #isSocket: boolean;
  /** True after a connection broke, until the next response to a ping: the container may be terminating. */
  #isUnhealthy = false;
  #answerCount = 0;
  #toldUnconfined = "";
  #unconfined: MissingIsolation | null = null;

  constructor(
    address: InstanceAddress,
    limits: ContainerClientLimits,
    /** `onChanged` is called when `isUnhealthy` or `unconfined` has changed. */
    { clock, onChanged }: { readonly clock: Clock; readonly onChanged: () => void },
  ) {
    this.#limits = limits;
    this.#clock = clock;
    this.#onChanged = onChanged;
    this.#isSocket = address.kind === "socket";
    const { origin, ...place } = connectionOf(address);
    const connect = { ...place, timeout: limits.connectMsMax };
    this.#pings = new Pool(origin, { connect, connections: 1, pipelining: 1 });
    const poolOptions = {
      connect,
      pipelining: 1,
      keepAliveTimeout: limits.keepAliveMs,
      keepAliveMaxTimeout: limits.keepAliveMs,
      headersTimeout: limits.stalledMsMax,
      bodyTimeout: limits.stalledMsMax,
      maxHeaderSize: 64 * 1024,
    };
    this.#pool = new Pool(origin, { ...poolOptions, connections: limits.connectionsMax });
    const silent = { headersTimeout: 0, bodyTimeout: 0 };
    this.#streams = new Pool(origin, { ...poolOptions, ...silent, connections: limits.streamConnectionsMax });
  }

  /** Number of responses to requests and pings. */
  get answerCount(): number {
    return this.#answerCount;
  }

  get isUnhealthy(): boolean {
    return this.#isUnhealthy;
  }

  /**
   * Returns whether an error means that the container did not process the request, so that it can be sent again. The
   * kernel resets a Unix socket when its process exits with unread data, and each connection has one request at a time.
   * A TCP connection can be reset for other reasons, so that ECONNRESET is not sufficient there.
   */
  wasNotSent(error: unknown): boolean {
    const { code = "" } = error as NodeJS.ErrnoException;
    return neverSent.has(code) || (this.#isSocket && code === "ECONNRESET");
  }

  /** The kinds of isolation that the container reported as missing; null if it has reported none. */
  get unconfined(): MissingIsolation | null {
    return this.#unconfined;
  }

  /**
   * Returns whether the container responds to a ping with status 200 within the limit. A refused connection returns
   * false, because a starting container does not listen yet. Rejects only when the signal aborts.
   */
  async ping(signal: AbortSignal): Promise<boolean> {
    try {
      const { pingMsMax } = this.#limits;
      using limit = openDeadline({ clock: this.#clock, afterMs: pingMsMax, signal });
      const reply = await this.#pings.request({ method: "GET", path: "/ping", signal: limit.signal });
      await reply.body.dump();
      const reported = reply.headers[unconfinedHeader];
      if (typeof reported === "string" && reported !== this.#toldUnconfined) {
        this.#toldUnconfined = reported;
        this.#unconfined = readUnconfined(reported);
        this.#onChanged();
      }
      this.#answerCount += 1;
      this.#setUnhealthy(false);
      return reply.statusCode === 200;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof Error) return false;
      throw error;
    }
  }

  /** Returns the body of the container's `/execution-parameters` response; null if the status is not 200. */
  async executionParameters(signal: AbortSignal): Promise<string | null> {
    using limit = openDeadline({ clock: this.#clock, afterMs: this.#limits.stalledMsMax, signal });
    const reply = await this.#pool.request({ method: "GET", path: "/execution-parameters", signal: limit.signal });
    const text = await readErrorText(reply.body);
    return reply.statusCode === 200 ? text : null;
  }

  /**
   * Sends a request to the container. Any status resolves. Rejects with the connection's error or the signal's reason
   * if there is no response.
   */
  async invoke(request: ContainerRequest): Promise<ContainerReply> {
    const { path, headers, body, isStreamed, signal } = request;
    const pool = isStreamed ? this.#streams : this.#pool;
    let reply;
    try {
      reply = await pool.request({ method: "POST", path, headers, body: body ?? null, signal });
    } catch (error) {
      if (!signal.aborted) this.#setUnhealthy(true);
      throw error;
    }
    this.#answerCount += 1;
    // A body that is destroyed without a reader emits an error, which would end the process.
    reply.body.on("error", (error: NodeJS.ErrnoException) => {
      if (!signal.aborted && error.code !== droppedCode) this.#setUnhealthy(true);
    });
    return { status: reply.statusCode, headers: reply.headers, body: reply.body };
  }

  /** Sends a request and buffers the response. Calls `admit` with the byte length after each chunk. */
  async invokeBuffered({ path, headers, body, ...options }: BufferedRequest): Promise<BufferedReply> {
    const handler = new BufferedReplyHandler(options);
    try {
      this.#pool.dispatch({ method: "POST", path, headers, body }, handler);
      const reply = await handler.reply;
      this.#answerCount += 1;
      return reply;
    } catch (error) {
      if (!options.signal.aborted && !(error instanceof ResponseRejected)) this.#setUnhealthy(true);
      throw error;
    }
  }

  /** Requests the container to load a model. Rejects with ContainerEndedError if the connection breaks. */
  async load(model: { readonly id: string; readonly target: string }, signal: AbortSignal): Promise<ModelLoadReply> {
    let reply;
    let message;
    try {
      reply = await this.#pool.request({
        method: "POST",
        path: "/models",
        headers: { "content-type": "application/json", "x-amzn-sagemaker-target-model": headerText(model.target) },
        body: JSON.stringify({ model_name: model.id, url: `/opt/ml/models/${model.id}/model` }),
        headersTimeout: this.#limits.loadMsMax,
        signal,
      });
      message = await readErrorText(reply.body);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#setUnhealthy(true);
      throw new ContainerEndedError(error);
    }
    // 409: the container has already loaded the model, because an earlier response to the load was lost.
    if (reply.statusCode === 200 || reply.statusCode === 409) {
      return { outcome: "loaded", memoryBytes: statedBytes(reply.headers) };
    }
    if (reply.statusCode === 507) return { outcome: "out-of-memory", message };
    return { outcome: "refused", status: reply.statusCode, message };
  }

  /** Returns the models that the container has loaded. A container may list them in pages. */
  async models(signal: AbortSignal): Promise<readonly ListedModel[]> {
    const ids: string[] = [];
    let token: string | null = null;
    for (let page = 1; ; page += 1) {
      const { models, nextPageToken = "" } = await this.#listPage(token, signal);
      ids.push(...models.map(({ modelName }) => modelName));
      if (nextPageToken === "") break;
      if (page === listPagesMax) throw new Error(`the container lists its models in more than ${listPagesMax} pages`);
      token = nextPageToken;
    }
    return await Promise.all(
      ids.map(async (id) => {
        const described = await this.#pool.request({ ...this.#listing(signal), path: `/models/${id}` });
        await described.body.dump();
        return { id, memoryBytes: statedBytes(described.headers) };
      }),
    );
  }

  async #listPage(token: string | null, signal: AbortSignal): Promise<ModelListPage> {
    const query = token === null ? {} : { next_page_token: token };
    const page = await this.#pool.request({ ...this.#listing(signal), path: "/models", query });
    if (page.statusCode === 200) return (await page.body.json()) as ModelListPage;
    await page.body.dump();
    throw new Error(`the container responded with status ${page.statusCode} to a listing of its models`);
  }

  #listing(signal: AbortSignal) {
    return { method: "GET" as const, headersTimeout: this.#limits.loadMsMax, signal };
  }

  /** Returns whether the container has loaded a model. */
  async hasModel(id: string, signal: AbortSignal): Promise<boolean> {
    const described = await this.#pool.request({ method: "GET", path: `/models/${id}`, signal });
    await described.body.dump();
    return described.statusCode !== 404;
  }

  async unload(model: { readonly id: string; readonly target: string | null }, signal: AbortSignal): Promise<void> {
    const reply = await this.#pool.request({
      method: "DELETE",
      path: `/models/${model.id}`,
      headers: model.target === null ? {} : { "x-amzn-sagemaker-target-model": headerText(model.target) },
      headersTimeout: this.#limits.loadMsMax,
      signal,
    });
    const message = await readErrorText(reply.body);
    if (reply.statusCode !== 200 && reply.statusCode !== 404) {
      throw new Error(`the container responded with status ${reply.statusCode} to an unload: ${message}`);
    }
  }

  #setUnhealthy(isUnhealthy: boolean): void {
    if (this.#isUnhealthy === isUnhealthy) return;
    this.#isUnhealthy = isUnhealthy;
    this.#onChanged();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#pool.destroy(), this.#streams.destroy(), this.#pings.destroy()]);
  }
}

/** Returns an address in undici's form. An IPv6 address is in brackets. */
function connectionOf(address: InstanceAddress): { readonly origin: string; readonly socketPath?: string } {
  switch (address.kind) {
    case "socket":
      return { origin: "http://container", socketPath: address.path };
    case "tcp": {
      const host = address.host.includes(":") ? `[${address.host}]` : address.host;
      return { origin: `http://${host}:${address.port}` };
    }
    default:
      return unreachable(address);
  }
}

/** Returns the bytes of memory that the container reports for a model; null if it does not report them. */
function statedBytes(headers: ContainerReply["headers"]): number | null {
  const stated = Number(headers[memoryHeader] ?? Number.NaN);
  return Number.isFinite(stated) ? stated : null;
}

/**
 * Encodes text for a header. Node writes header values as Latin-1, so that UTF-8 bytes are sent for other characters.
 */
function headerText(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Returns the first bytes of an error's body, up to `errorTextBytesMax`. Leaving the loop destroys the stream. */
export async function readErrorText(body: Readable): Promise<string> {
  const parts: Buffer[] = [];
  let byteLength = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    parts.push(chunk);
    byteLength += chunk.length;
    if (byteLength >= errorTextBytesMax) break;
  }
  return Buffer.concat(parts).subarray(0, errorTextBytesMax).toString("utf8");
}

function readUnconfined(text: string): MissingIsolation | null {
  let reported: unknown;
  try {
    reported = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof reported !== "object" || reported === null) return null;
  const rows = Object.entries(reported).slice(0, unconfinedRowsMax);
  const cut = (word: unknown) => String(word).slice(0, unconfinedCharsMax);
  return Object.fromEntries(rows.map(([what, why]) => [cut(what), cut(why)]));
}
