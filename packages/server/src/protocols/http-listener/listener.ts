import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { InferenceError, type ByteBudget, type Clock, type Logger } from "@galatea/base";
import type { Listener } from "../listener.ts";
import { BodyError, declaredLength } from "./body.ts";
import { LiveExchange, type Exchange, type ExchangeOwner } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import { isConnectionEnding, lingerAfterReply, onClientError } from "./client-error.ts";
import { retryHeaders, replyError, replyFailure } from "./reply.ts";
import { transferCodingError } from "./transfer-coding.ts";

export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socketPath: string };

export interface HttpListenerOptions {
  readonly address: ListenAddress;
  readonly limits: HttpLimits;
  readonly logger: Logger;
  /** Memory budget for bodies and responses in flight. */
  readonly budget: ByteBudget;
  readonly clock: Clock;
  /** Handles one request. An exception is sent as an error in the protocol's format. */
  readonly handle: (exchange: Exchange) => void | Promise<void>;
}

/** Open exchanges of each connection, oldest first. Arrays are used instead of sets for the reason given at `RecyclingMap`. */
const liveOf = new WeakMap<Socket, LiveExchange[]>();

/** Binds the address and starts to serve. Rejects with Triton's text when the address is in use. */
export async function openHttpListener(options: HttpListenerOptions): Promise<Listener> {
  const listener = new HttpListener(options);
  await listener.listen();
  return listener;
}

class HttpListener implements Listener, ExchangeOwner {
  readonly #options: HttpListenerOptions;
  readonly #server: Server;
  readonly #sockets = new Map<Socket, readonly LiveExchange[]>();
  #activeCount = 0;
  #closing = false;
  port = 0;

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    const { limits } = options;
    this.#server = createServer({
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersTimeoutMs,
      // A total time limit would abort slow uploads. Instead, each request must make progress (see #onStall).
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(30_000, Math.max(100, limits.headersTimeoutMs / 2)),
      noDelay: true,
      // Triton accepts HTTP/1.1 requests without a Host header.
      requireHostHeader: false,
    });
    this.#server.maxConnections = limits.connectionsMax;
    this.#server.timeout = limits.stallTimeoutMs;
    this.#server.on("connection", (socket: Socket) => this.#onConnection(socket));
    this.#server.on("timeout", (socket: Socket) => this.#onStall(socket));
    this.#server.on("request", (request, response) => this.#onRequest(request, response));
    this.#server.on("checkContinue", (request, response) => this.#onRequest(request, response, true));
    this.#server.on("checkExpectation", (request, response) => this.#onRequest(request, response));
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) =>
      onClientError(error, socket, liveOf.get(socket) ?? [], limits.stallTimeoutMs),
    );
  }

  get activeCount(): number {
    return this.#activeCount;
  }

  listen(): Promise<void> {
    const { address, limits } = this.#options;
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException) => {
        const name = "socketPath" in address ? address.socketPath : `${address.host}:${address.port}`;
        const text =
          error.code === "EADDRINUSE"
            ? `Socket '${name}' already in use `
            : `failed to listen on '${name}': ${error.message}`;
        reject(new InferenceError("UNAVAILABLE", text, { cause: error }));
      };
      this.#server.once("error", onError);
      this.#server.listen(
        "socketPath" in address
          ? { path: address.socketPath, backlog: limits.backlog }
          : { host: address.host, port: address.port, backlog: limits.backlog },
        () => {
          this.#server.off("error", onError);
          this.#server.on("error", (error) => this.#options.logger.error(`HTTP listener: ${error.message}`));
          const bound = this.#server.address();
          if (bound !== null && typeof bound === "object") this.port = (bound satisfies AddressInfo).port;
          resolve();
        },
      );
    });
  }

  close(deadline: AbortSignal): Promise<void> {
    this.#closing = true;
    return new Promise((resolve) => {
      const cutOff = () => this.#server.closeAllConnections();
      this.#server.close(() => {
        deadline.removeEventListener("abort", cutOff);
        resolve();
      });
      // Closes connections that have not sent any request, too; Node does not count these as idle.
      for (const [socket, live] of this.#sockets) if (live.length === 0) socket.destroy();
      if (deadline.aborted) cutOff();
      else deadline.addEventListener("abort", cutOff, { once: true });
    });
  }

  #onConnection(socket: Socket): void {
    const live: LiveExchange[] = [];
    liveOf.set(socket, live);
    this.#sockets.set(socket, live);
    // Node reports the end of a connection only to the first of its pipelined responses. The others would keep their memory, so each
    // connection keeps a list of its exchanges.
    socket.once("close", () => {
      this.#sockets.delete(socket);
      for (const exchange of live.slice()) exchange.close(true);
    });
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, expectsContinue = false): void {
    if (isConnectionEnding(request.socket)) {
      request.resume();
      return;
    }
    const exchange = new LiveExchange({ request, response }, this.#options, this);
    const { limits } = this.#options;
    const live = liveOf.get(request.socket);
    live?.push(exchange);
    this.#activeCount++;
    response.on("finish", () => exchange.close(false));
    if (this.#closing) response.shouldKeepAlive = false;
    if (live !== undefined && live.length > limits.pipelinedMax) {
      response.shouldKeepAlive = false;
      return replyError(exchange, 503, `more than ${limits.pipelinedMax} pipelined requests on one connection`);
    }
    const coding = transferCodingError(request);
    if (coding !== null) {
      response.shouldKeepAlive = false;
      lingerAfterReply(request.socket, limits.stallTimeoutMs);
      return replyError(exchange, coding.status, coding.message);
    }
    // An HTTP/1.0 proxy may have interpreted the chunks differently, so nothing after this body is parsed as a request.
    if (request.httpVersionMinor === 0 && request.headers["transfer-encoding"] !== undefined) {
      response.shouldKeepAlive = false;
      lingerAfterReply(request.socket, limits.stallTimeoutMs);
    }
    // Asks only for bodies that will be accepted. Without this check, a client would send a body that is too long and is then rejected.
    if (expectsContinue && isWelcome(exchange, limits)) response.writeContinue();
    this.#respond(exchange);
  }

  exchangeClosed(exchange: LiveExchange): void {
    const live = liveOf.get(exchange.request.socket);
    live?.splice(live.indexOf(exchange), 1);
    this.#activeCount--;
    if (this.#closing) this.#server.closeIdleConnections();
  }

  #respond(exchange: LiveExchange): void {
    let result: void | Promise<void>;
    try {
      result = this.#options.handle(exchange);
    } catch (error) {
      return this.#fail(exchange, error);
    }
    result?.catch((error: unknown) => this.#fail(exchange, error));
  }

  #fail(exchange: LiveExchange, thrown: unknown): void {
    if (exchange.closed) return;
    const error = InferenceError.from(thrown);
    if (!(thrown instanceof InferenceError)) {
      this.#options.logger.error(`HTTP ${exchange.method} ${exchange.path}: ${error.stack ?? error.message}`);
    }
    const { response } = exchange;
    if (response.headersSent) {
      // The response has begun. Destroying it shows the client that the response is incomplete.
      response.destroy();
      return;
    }
    const closes = error instanceof BodyError && error.closes;
    if (closes) {
      response.shouldKeepAlive = false;
      lingerAfterReply(exchange.request.socket, this.#options.limits.stallTimeoutMs);
    }
    if (error instanceof BodyError)
      replyError(exchange, error.status, error.message, "text/plain", retryHeaders(error));
    else replyFailure(exchange, error);
  }

  /**
   * Called when no byte was transferred for the stall time. Closes the connection if the client should send or read. A running model may
   * take any time.
   */
  #onStall(socket: Socket): void {
    const live = liveOf.get(socket);
    if (live === undefined || live.length === 0 || socket.writableLength > 0) {
      socket.destroy();
      return;
    }
    for (const exchange of live) {
      if (exchange.request.complete || exchange.response.headersSent) continue;
      exchange.response.shouldKeepAlive = false;
      // Destroys the request after the response was sent. Functions that read the body then get this error.
      exchange.onClosed(() => exchange.request.destroy(new Error("the request body did not arrive in time")));
      replyError(exchange, 408, "the request body did not arrive in time");
      return;
    }
  }
}

/** Returns whether a body of the announced length would be accepted. */
function isWelcome(exchange: Exchange, limits: HttpLimits): boolean {
  const declared = declaredLength(exchange);
  return declared <= limits.bodyBytesMax && exchange.memory.fits(Math.max(declared, 0));
}
