import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { InferenceError, Semaphore, type ByteBudget, type Clock, type Logger } from "@galatea/base";
import { largeInflationsMax } from "../inflation-slot.ts";
import type { Listener } from "../listener.ts";
import { Call } from "./call.ts";
import { ClientResets } from "./client-resets.ts";
import { Connection } from "./connection.ts";
import type { KeepaliveOptions } from "./keepalive.ts";
import type { GrpcLimits } from "./limits.ts";
import type { CompressionLevel } from "./message-compression.ts";
import { ReadBuffers } from "./read-buffers.ts";
import { GrpcError } from "./status.ts";

/** Certificate and key of the server, as PEM text. */
export interface GrpcTls {
  readonly certificate: Buffer;
  readonly key: Buffer;
  /** Certificate authorities, as PEM text. If set, a client needs a certificate that one of them has signed. */
  readonly clientRoots: Buffer | null;
}

export interface GrpcListenerOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly limits: GrpcLimits;
  readonly keepalive: KeepaliveOptions;
  readonly compressionLevel: CompressionLevel;
  readonly tls: GrpcTls | null;
  readonly clock: Clock;
  /** Memory budget for messages in flight. */
  readonly budget: ByteBudget;
  readonly logger: Logger;
  /** Returns the handler of a method by its path (`/<package>.<service>/<method>`); null if there is no such method. */
  readonly method: (path: string) => ((call: Call) => void) | null;
}

/** A gRPC listener whose certificates can be replaced. */
export interface SecureListener extends Listener {
  /**
   * Sets the certificates for new connections; open connections keep their current ones. If the certificates are invalid or TLS is off,
   * throws and changes nothing.
   */
  replaceTls(tls: GrpcTls): void;
}

/** Binds the address and starts to serve. Rejects when the address is in use. */
export async function openGrpcListener(options: GrpcListenerOptions): Promise<SecureListener> {
  const listener = new GrpcListener(options);
  await listener.listen();
  return listener;
}

class GrpcListener implements SecureListener {
  readonly #options: GrpcListenerOptions;
  readonly #server: Http2Server;
  readonly #connections = new Map<ServerHttp2Session, Connection>();
  /** Sockets of all connections, including those of clients whose TLS handshake is not complete. */
  readonly #sockets = new Set<Socket>();
  readonly #resets: ClientResets;
  readonly #inflations = new Semaphore(largeInflationsMax);
  /** The socket for which Node is creating a session. */
  #accepted: Socket | null = null;
  #isClosing = false;
  #activeCount = 0;
  port = 0;

  constructor(options: GrpcListenerOptions) {
    this.#options = options;
    this.#server = serverOf(options);
    this.#resets = new ClientResets(options);
    this.#server.on("session", (session) => this.#onSession(session));
    this.#server.on("stream", (stream, headers) => this.#onStream(stream, headers));
    // A failed handshake affects only its own client, so it is ignored.
    this.#server.on("sessionError", () => {});
    // Node's session does not expose its socket. This listener runs just before the one that creates the session, and records the socket.
    this.#server.prependListener(options.tls === null ? "connection" : "secureConnection", (socket: Socket) => {
      this.#accepted = socket;
    });
    this.#server.maxConnections = options.limits.connectionsMax;
    this.#server.on("connection", (socket: Socket) => {
      socket.setNoDelay(true);
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  get activeCount(): number {
    return this.#activeCount;
  }

  listen(): Promise<void> {
    const { address, limits, logger } = this.#options;
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException) => {
        const name = `${address.host}:${address.port}`;
        const text =
          error.code === "EADDRINUSE"
            ? `Socket '${name}' already in use `
            : `failed to listen on '${name}': ${error.message}`;
        reject(new InferenceError("UNAVAILABLE", text, { cause: error }));
      };
      this.#server.once("error", onError);
      this.#server.listen({ host: address.host, port: address.port, backlog: limits.backlog }, () => {
        this.#server.off("error", onError);
        this.#server.on("error", (error) => logger.error(`gRPC listener: ${error.message}`));
        this.port = (this.#server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  replaceTls(tls: GrpcTls): void {
    if (!("setSecureContext" in this.#server)) throw new Error("the gRPC listener was opened without TLS");
    (this.#server as Http2SecureServer).setSecureContext(certificatesOf(tls));
  }

  close(deadline: AbortSignal): Promise<void> {
    this.#isClosing = true;
    return new Promise((resolve) => {
      const cutOff = () => {
        for (const connection of this.#connections.values()) connection.destroy();
        this.#endSockets();
      };
      this.#server.close(() => {
        deadline.removeEventListener("abort", cutOff);
        resolve();
      });
      for (const connection of this.#connections.values()) connection.close();
      if (this.#connections.size === 0) this.#endSockets();
      if (deadline.aborted) cutOff();
      else deadline.addEventListener("abort", cutOff, { once: true });
    });
  }

  #onSession(session: ServerHttp2Session): void {
    const { keepalive, limits, clock } = this.#options;
    const socket = this.#accepted;
    if (socket === null || this.#connections.size >= limits.connectionsMax) return session.destroy();
    if (this.#resets.isRefused(socket.remoteAddress ?? "")) {
      socket.destroy();
      return;
    }
    const { prefaceTimeoutMs, connectionWindowBytes: windowBytes } = limits;
    this.#connections.set(
      session,
      new Connection({ socket, session, keepalive, prefaceTimeoutMs, windowBytes, clock, resets: this.#resets }),
    );
    session.once("close", () => {
      this.#connections.delete(session);
      if (this.#isClosing && this.#connections.size === 0) this.#endSockets();
    });
  }

  #endSockets(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { limits, compressionLevel, clock, budget } = this.#options;
    const connection =
      stream.session === undefined ? undefined : this.#connections.get(stream.session as ServerHttp2Session);
    const reads = connection?.reads ?? new ReadBuffers();
    reads.watch(stream);
    const type = headers["content-type"];
    if (headers[":method"] !== "POST" || type === undefined || !type.startsWith("application/grpc")) {
      stream.on("error", () => {});
      connection?.watchReset(stream, null);
      stream.respond({ ":status": headers[":method"] === "POST" ? 415 : 405 }, { endStream: true });
      return;
    }
    const inflations = this.#inflations;
    const call = new Call({ stream, headers, limits, compressionLevel, clock, budget, reads, inflations });
    this.#activeCount++;
    call.onClosed(() => this.#activeCount--);
    connection?.add(call);
    connection?.watchReset(stream, call);
    try {
      const begin = this.#options.method(headers[":path"] ?? "");
      if (begin === null) throw new GrpcError("UNIMPLEMENTED", `unknown method ${headers[":path"]}`);
      begin(call);
    } catch (error) {
      call.fail(error);
    }
  }
}

function serverOf({ limits, tls }: GrpcListenerOptions): Http2Server {
  const options = {
    settings: {
      maxConcurrentStreams: limits.callsPerConnectionMax,
      initialWindowSize: limits.callWindowBytes,
      maxFrameSize: limits.frameBytesMax,
      maxHeaderListSize: limits.metadataBytesMax,
      enablePush: false,
    },
    maxSessionMemory: limits.connectionMebibytesMax,
    streamResetBurst: limits.connectionResetBurstMax,
    streamResetRate: limits.connectionResetsPerSecondMax,
    // gRPC allows white space around metadata values; Node's strict check would drop such fields.
    strictFieldWhitespaceValidation: false,
  };
  if (tls === null) return createServer(options);
  const mutual = tls.clientRoots === null ? {} : { requestCert: true, rejectUnauthorized: true };
  const handshakeTimeout = limits.prefaceTimeoutMs;
  return createSecureServer({ ...options, handshakeTimeout, ...certificatesOf(tls), ...mutual, allowHTTP1: false });
}

function certificatesOf({ certificate: cert, key, clientRoots }: GrpcTls) {
  return { cert, key, ...(clientRoots === null ? {} : { ca: clientRoots }) };
}
