/** All limits of a gRPC listener. Defaults are Triton's where Triton has the limit. */
export interface GrpcLimits {
  /** A whole request message, and a whole response message. */
  readonly messageBytesMax: number;
  /** Metadata of a request; the default of gRPC's own implementations. */
  readonly metadataBytesMax: number;
  /** Concurrent calls of one connection; a client that starts more waits. */
  readonly callsPerConnectionMax: number;
  readonly connectionsMax: number;
  /** Bytes of one call that the client may send before the server reads them. */
  readonly callWindowBytes: number;
  /** Bytes of all calls of one connection that the client may send before the server reads them. */
  readonly connectionWindowBytes: number;
  /** Size of a frame from the client. Each frame, and each buffer of 64 KiB that is read, costs one call to JavaScript. */
  readonly frameBytesMax: number;
  /** Memory of the HTTP/2 library for one connection: its streams, header tables and unacknowledged frames. */
  readonly connectionMebibytesMax: number;
  /**
   * Calls that the clients of one address may reset in a second, and at once, over all of its connections. Over this the connection that
   * resets is closed, and over twice as many new connections of the address are rejected for some seconds.
   */
  readonly resetsPerSecondMax: number;
  readonly resetBurstMax: number;
  /** Resets of one connection, including calls whose deadlines have passed: the HTTP/2 library ends it. */
  readonly connectionResetsPerSecondMax: number;
  readonly connectionResetBurstMax: number;
  /** Time limit for a new connection's HTTP/2 preface. */
  readonly prefaceTimeoutMs: number;
  /** Time without progress of reading or writing a message after which a call ends. */
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
