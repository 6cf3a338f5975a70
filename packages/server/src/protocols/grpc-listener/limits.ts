/** The limits of a gRPC listener. Defaults are Triton's, where Triton has such a limit. */
export interface GrpcLimits {
  /** Maximum size of a request message, and of a response message. */
  readonly messageBytesMax: number;
  /** Maximum size of a request's metadata; the default is that of gRPC's own implementations. */
  readonly metadataBytesMax: number;
  /** Maximum number of concurrent calls on one connection; the client delays further calls. */
  readonly callsPerConnectionMax: number;
  readonly connectionsMax: number;
  /** Bytes of one call that the client may send ahead of the server's reads. */
  readonly callWindowBytes: number;
  /** Bytes of all calls of one connection that the client may send ahead of the server's reads. */
  readonly connectionWindowBytes: number;
  /**
   * Maximum size of a frame from the client. Each frame, and each buffer of 64 KiB, costs one call to JavaScript; large frames therefore
   * need less CPU time.
   */
  readonly frameBytesMax: number;
  /** Maximum memory of the HTTP/2 library for one connection: streams, header tables and unacknowledged frames. */
  readonly connectionMebibytesMax: number;
  /**
   * Calls that the clients of one address may reset per second, and in a burst, over all connections. Above this limit, the connection is
   * closed. Above twice the limit, new connections of the address are rejected for some seconds.
   */
  readonly resetsPerSecondMax: number;
  readonly resetBurstMax: number;
  /**
   * Maximum number of resets on one connection, including calls whose deadlines have passed. The HTTP/2 library closes a connection that
   * exceeds it.
   */
  readonly connectionResetsPerSecondMax: number;
  readonly connectionResetBurstMax: number;
  /** Time within which a new connection must send the HTTP/2 preface. */
  readonly prefaceTimeoutMs: number;
  /** Time in which no byte of a message is read or written, after which the call is ended. */
  readonly stallTimeoutMs: number;
  readonly backlog: number;
}

export const defaultGrpcLimits: GrpcLimits = {
  messageBytesMax: 2 ** 31 - 1,
  metadataBytesMax: 16 * 1024,
  callsPerConnectionMax: 4096,
  connectionsMax: 20_000,
  callWindowBytes: 4 * 1024 * 1024,
  connectionWindowBytes: 64 * 1024 * 1024,
  frameBytesMax: 64 * 1024,
  connectionMebibytesMax: 256,
  resetsPerSecondMax: 100,
  resetBurstMax: 200,
  connectionResetsPerSecondMax: 10_000,
  connectionResetBurstMax: 20_000,
  prefaceTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
  backlog: 1024,
};
