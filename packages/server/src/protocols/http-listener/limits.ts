/** All limits of an HTTP listener. */
export interface HttpLimits {
  /** Maximum size of all header lines of a request together. */
  readonly headerBytesMax: number;
  /** Maximum size of a request body, binary tensors included (Triton has no limit here). */
  readonly bodyBytesMax: number;
  /** Maximum size of JSON tensors, JSON headers, raw inputs and decompressed bodies: the flag --http-max-input-size. */
  readonly inputBytesMax: number;
  /** Maximum number of non-empty chunks in a chunked request body. */
  readonly chunksMax: number;
  /** Time within which a request's header lines must arrive. */
  readonly headersTimeoutMs: number;
  /** Time in which no byte of a body is read and no byte of a response is written, after which the connection is closed. */
  readonly stallTimeoutMs: number;
  /**
   * Time after which an idle connection is closed. Connection pools of clients usually close idle connections earlier. If the server closed
   * first, a client could send a request on a connection that is being closed.
   */
  readonly keepAliveTimeoutMs: number;
  readonly connectionsMax: number;
  /** Maximum number of pipelined requests on one connection. A further request gets status 503, and the connection is closed. */
  readonly pipelinedMax: number;
  readonly backlog: number;
}

/** Limits that have no flag. The values are Triton's, where Triton has such a limit. */
export const defaultHttpLimits: Omit<HttpLimits, "inputBytesMax"> = {
  headerBytesMax: 64 * 1024,
  bodyBytesMax: 2 ** 31 - 1,
  chunksMax: 65_536,
  headersTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
  keepAliveTimeoutMs: 75_000,
  connectionsMax: 20_000,
  pipelinedMax: 64,
  backlog: 1024,
};
