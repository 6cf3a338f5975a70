/** All limits of an HTTP listener. */
export interface HttpLimits {
  /** All header lines of a request together. */
  readonly headerBytesMax: number;
  /** A whole request body, including binary tensors (Triton has no limit here). */
  readonly bodyBytesMax: number;
  /** JSON tensors, JSON headers, raw inputs and decompressed bodies: the flag --http-max-input-size. */
  readonly inputBytesMax: number;
  /** Non-empty chunks of a chunked request body. */
  readonly chunksMax: number;
  /** Time limit for a request's header lines. */
  readonly headersTimeoutMs: number;
  /** Time without progress of reading a body or writing a response after which a connection ends. */
  readonly stallTimeoutMs: number;
  /** Longer than clients' pools keep idle connections, so that the client closes them. */
  readonly keepAliveTimeoutMs: number;
  readonly connectionsMax: number;
  /** Concurrent pipelined requests of one connection; one more is rejected with 503, and the connection ends. */
  readonly pipelinedMax: number;
  readonly backlog: number;
}

/** Limits without a flag; Triton's defaults where it has the limit. */
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
