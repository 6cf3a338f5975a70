import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as NetServer, type AddressInfo, type Socket } from "node:net";
import { AwsError } from "@galatea/base";
import { inheritable } from "@galatea/base/system";
import type { Gateway } from "../wire/index.ts";

const backlog = 1024;

/** Every bound of the platform's port in one place. */
export interface PlatformServerLimits {
  /** Longer than the pools of boto3 keep an idle connection, so that it is they who close it. */
  readonly keepAliveTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /** A connection on which no byte moves ends after this; longer than any answer is held back: an invocation has 60 s. */
  readonly stallTimeoutMs: number;
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /** What is under way when the platform stops may end within this; then it is cut off. */
  readonly stopGraceMs: number;
  /** Requests in flight may end within this time when the platform restarts; new ones wait meanwhile. */
  readonly restartGraceMs: number;
  /** A platform that restarts answers connections without a request for so long, in case their next one is on its way. */
  readonly restartIdleMs: number;
  /** Streams are told so then, and have so long to say it. */
  readonly cutMs: number;
}

export const platformServerLimits: PlatformServerLimits = {
  keepAliveTimeoutMs: 75_000,
  headersTimeoutMs: 60_000,
  stallTimeoutMs: 120_000,
  headerBytesMax: 64 * 1024,
  connectionsMax: 10_000,
  stopGraceMs: 30_000,
  restartGraceMs: 1000,
  restartIdleMs: 250,
  cutMs: 1000,
};

export interface PlatformServer {
  readonly server: Server;
  /**
   * Takes no more connections, ends those without a request at once, the others with their answers, and after `graceMs` whatever is
   * left: answers that are streams end with an error within `cutMs`, so that no client takes a part for the whole, and the others with
   * their connections. Resolves when no connection is.
   */
  readonly close: (graceMs: number) => Promise<void>;
  /** As `close`, for a restart: each connection ends with its next answer, and no client sees one end that it may be sending a request on. */
  readonly handOver: () => Promise<void>;
  /** Aborts when streams are cut off. */
  readonly cutting: AbortSignal;
}

export function createPlatformServer(limits: PlatformServerLimits): PlatformServer {
  const server = createServer({
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.headerBytesMax,
    noDelay: true,
  });
  server.headersTimeout = limits.headersTimeoutMs;
  // Uploads of many gigabytes take their time; one on which no byte moves does not.
  server.requestTimeout = 0;
  server.timeout = limits.stallTimeoutMs;
  server.maxConnections = limits.connectionsMax;
  const unused = unusedConnections(server);
  const open = new Set<ServerResponse>();
  let isHandedOver = false;
  const watch = (_request: IncomingMessage, response: ServerResponse) => {
    open.add(response);
    if (isHandedOver) response.setHeader("connection", "close");
    response.once("close", () => {
      open.delete(response);
      if (!server.listening && !isHandedOver) server.closeIdleConnections();
    });
  };
  server.on("request", watch).on("checkContinue", watch);
  const cutting = new AbortController();
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  const endUnused = () => {
    server.closeIdleConnections();
    for (const socket of unused) socket.destroy();
  };
  const cutAfter = async (graceMs: number) => {
    let timer = setTimeout(() => {
      cutting.abort(new AwsError("InternalStreamFailure", cutText, { statusFallback: 503 }));
      timer = setTimeout(() => server.closeAllConnections(), limits.cutMs);
    }, graceMs);
    await closed;
    clearTimeout(timer);
  };
  const close = async (graceMs: number) => {
    if (server.listening) server.close();
    endUnused();
    await cutAfter(graceMs);
  };
  const handOver = async () => {
    isHandedOver = true;
    for (const response of open) if (!response.headersSent) response.setHeader("connection", "close");
    // Not HTTP's: that ends connections between two requests at once.
    NetServer.prototype.close.call(server);
    const timer = setTimeout(endUnused, limits.restartIdleMs);
    await cutAfter(limits.restartGraceMs);
    clearTimeout(timer);
  };
  return { server, close, handOver, cutting: cutting.signal };
}

const cutText = "The platform stops: the stream is cut off before its end.";

/** Connections on which no request has come yet: to Node they are not idle. */
function unusedConnections(server: Server): ReadonlySet<Socket> {
  const unused = new Set<Socket>();
  const used = ({ socket }: IncomingMessage) => unused.delete(socket);
  server.on("connection", (socket: Socket) => {
    unused.add(socket);
    socket.once("close", () => unused.delete(socket));
  });
  server.on("request", used).on("checkContinue", used).on("connect", used);
  return unused;
}

/**
 * Holds the requests that arrive while the platform is being opened. Calling the result gives them to the gateway, in their order,
 * and attaches it for those to come. What waits is bounded by the connections, and by the stall time, after which it ends.
 */
export function queueRequests(server: Server): (gateway: Gateway) => void {
  const { promise: opened, resolve: open } = Promise.withResolvers<Gateway>();
  const hold = (request: IncomingMessage, response: ServerResponse) => {
    void opened.then((gateway) => {
      // A client that gave up meanwhile must not have its request carried out when nobody learns the outcome.
      if (!response.destroyed) gateway.handle(request, response);
    });
  };
  server.on("request", hold).on("checkContinue", hold);
  return (gateway) => {
    server.off("request", hold).off("checkContinue", hold);
    gateway.attach(server);
    open(gateway);
  };
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** A listening socket that the platform before this one left open; a new one unless given, at `host` and `port`. */
  readonly listeningFd?: number | null;
}

/** Resolves with the URL. */
export function listen(server: Server, { host, port, listeningFd = null }: ListenOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(listeningFd === null ? { host, port, backlog } : { fd: listeningFd, backlog }, () => {
      server.off("error", reject);
      const bound = server.address() as AddressInfo;
      const name = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
      resolve(`http://${name}:${bound.port}`);
    });
  });
}

/**
 * A descriptor of the server's listening socket for the program that replaces this one: clients that connect before it listens wait in the
 * socket's queue, and none is refused.
 */
export function inheritableSocket(server: Server): number {
  const { _handle: handle } = server as Server & { readonly _handle: { readonly fd: number } | null };
  if (handle === null) throw new Error("bug: the server does not listen");
  return inheritable(handle.fd);
}
