/** Every bound of a gRPC listener in one place. Where Triton has one of its own, the default is Triton's. */
export interface GrpcLimits {
  /** A whole request message, and a whole response message. */
  readonly messageBytesMax: number;
  /** Metadata of a request; what gRPC's own implementations take. */
  readonly metadataBytesMax: number;
  /** Calls of one connection that run at a time; a client that begins more waits. */
  readonly callsPerConnectionMax: number;
  readonly connectionsMax: number;
  /** Bytes that one call may have on their way to the server before it reads them. */
  readonly callWindowBytes: number;
  /** The same of all calls of one connection together. */
  readonly connectionWindowBytes: number;
  /** Of a frame from the client. One call to JavaScript for each, and for each buffer that is read: 64 KiB. */
  readonly frameBytesMax: number;
  /** Memory of the HTTP/2 library for one connection: its streams, header tables and frames that wait to be acknowledged. */
  readonly connectionMebibytesMax: number;
  /**
   * Calls that the clients of one address may reset in a second, and in one go, over all of its connections: then the connection that
   * resets is closed, and beyond twice as many new connections of the address are refused for some seconds.
   */
  readonly resetsPerSecondMax: number;
  readonly resetBurstMax: number;
  /** The same for one connection, with the calls whose deadlines have passed: the HTTP/2 library ends it. */
  readonly connectionResetsPerSecondMax: number;
  readonly connectionResetBurstMax: number;
  /** A new connection must have said that it speaks HTTP/2 within this. */
  readonly prefaceTimeoutMs: number;
  /** A call without progress while a message is read or written ends after this. */
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
