import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { AwsError } from "@galatea/base";
import type { Gateway } from "../wire/index.ts";

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
  const watch = (_request: IncomingMessage, response: ServerResponse) => {
    response.once("close", () => {
      if (!server.listening) server.closeIdleConnections();
    });
  };
  server.on("request", watch).on("checkContinue", watch);
  const cutting = new AbortController();
  const close = (graceMs: number) =>
    new Promise<void>((resolve) => {
      let timer = setTimeout(() => {
        cutting.abort(new AwsError("InternalStreamFailure", cutText, { statusFallback: 503 }));
        timer = setTimeout(() => server.closeAllConnections(), limits.cutMs);
      }, graceMs);
      server.close(() => {
        clearTimeout(timer);
        resolve();
      });
      for (const socket of unused) socket.destroy();
    });
  return { server, close, cutting: cutting.signal };
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
export function holdRequests(server: Server): (gateway: Gateway) => void {
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

/** Resolves with the URL. */
export function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog: 1024 }, () => {
      server.off("error", reject);
      const bound = server.address() as AddressInfo;
      const name = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
      resolve(`http://${name}:${bound.port}`);
    });
  });
}
