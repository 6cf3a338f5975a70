import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as NetServer, type AddressInfo, type Socket } from "node:net";
import { AwsError } from "@galatea/base";
import { duplicateForExec } from "@galatea/base/system";
import type { Gateway } from "../wire/index.ts";

const backlog = 1024;

/** The limits of the platform's port. */
export interface PlatformServerLimits {
  /** Longer than boto3's pools keep an idle connection, so that the client closes the connection and not the server. */
  readonly keepAliveTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /**
   * Time without any byte after which a connection is closed. Longer than the longest pause before a response: an
   * invocation may take 60 s.
   */
  readonly stallTimeoutMs: number;
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /** Time for requests in flight to complete when the platform stops; then their connections are closed. */
  readonly stopGraceMs: number;
  /** Time for requests in flight to complete when the platform restarts. New requests wait for the new process. */
  readonly restartGraceMs: number;
  /** Time for which a restarting platform serves idle connections, whose next request may be in transit. */
  readonly restartIdleMs: number;
  /** Time in which aborted streams may send an error. */
  readonly streamErrorMs: number;
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
  streamErrorMs: 1000,
};

export interface PlatformServer {
  readonly server: Server;
  /**
   * Accepts no more connections and closes idle ones at once. Other connections end after their responses, at the
   * latest after `graceMs`. Streamed responses then send an error within `streamErrorMs`, so that no client takes them
   * for complete. Resolves when no connection is left.
   */
  readonly close: (graceMs: number) => Promise<void>;
  /**
   * Closes for a restart: each connection ends after its next response, so that no client loses a request in transit.
   */
  readonly handOver: () => Promise<void>;
  /** Aborts when the grace period of a shutdown is over and streamed responses must end. */
  readonly streamAbort: AbortSignal;
}

export function createPlatformServer(limits: PlatformServerLimits): PlatformServer {
  const server = createServer({
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.headerBytesMax,
    noDelay: true,
  });
  server.headersTimeout = limits.headersTimeoutMs;
  // An upload of many gigabytes may take hours, so only the time without progress is limited.
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
      cutting.abort(new AwsError("InternalStreamFailure", streamAbortText, { statusFallback: 503 }));
      timer = setTimeout(() => server.closeAllConnections(), limits.streamErrorMs);
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
    // `http.Server.close` would also close idle connections, whose next request may be in transit.
    NetServer.prototype.close.call(server);
    const timer = setTimeout(endUnused, limits.restartIdleMs);
    await cutAfter(limits.restartGraceMs);
    clearTimeout(timer);
  };
  return { server, close, handOver, streamAbort: cutting.signal };
}

const streamAbortText = "The platform is shutting down: the stream was aborted before its end.";

/** Tracks connections that have not sent a request yet. Node's `closeIdleConnections` does not close them. */
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
 * Queues the requests that arrive while the platform is being opened. The returned function passes them to the gateway,
 * in order, and attaches it for later ones. The number of connections and the stall time limit the queue.
 */
export function queueRequests(server: Server): (gateway: Gateway) => void {
  const { promise: opened, resolve: open } = Promise.withResolvers<Gateway>();
  const hold = (request: IncomingMessage, response: ServerResponse) => {
    void opened.then((gateway) => {
      // The request of a disconnected client is not executed, because the client would not learn its outcome.
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
  /**
   * A listening socket that the previous platform process has left open; null or absent: a new one at `host` and
   * `port`.
   */
  readonly listeningFd?: number | null;
}

/** Starts listening, on an inherited socket or a new one. Resolves with the URL. */
export function listenOn(server: Server, { host, port, listeningFd = null }: ListenOptions): Promise<string> {
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
 * Returns a descriptor of the listening socket for the program that replaces this one. Clients that connect during the
 * restart wait in the socket's queue; no connection is refused.
 */
export function duplicateListeningSocket(server: Server): number {
  const { _handle: handle } = server as Server & { readonly _handle: { readonly fd: number } | null };
  if (handle === null) throw new Error("bug: the server does not listen");
  return duplicateForExec(handle.fd);
}
