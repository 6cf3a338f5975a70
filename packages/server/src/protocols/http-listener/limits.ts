/** Every bound of an HTTP listener in one place. */
export interface HttpLimits {
  /** All header lines of a request together. */
  readonly headerBytesMax: number;
  /** A whole request body, binary tensors included (Triton has no bound here). */
  readonly bodyBytesMax: number;
  /** JSON tensors, JSON headers, raw inputs and decompressed bodies: the flag --http-max-input-size. */
  readonly inputBytesMax: number;
  /** Non-empty chunks of a chunked request body. */
  readonly chunksMax: number;
  /** A client that has begun a request must finish its header lines within this. */
  readonly headersTimeoutMs: number;
  /** A connection without progress while a body is read or a response is written ends after this. */
  readonly stallTimeoutMs: number;
  /** Longer than the pools of clients keep idle connections, so that it is they who close. */
  readonly keepAliveTimeoutMs: number;
  readonly connectionsMax: number;
  /** Requests of one connection that are answered at a time; one more is refused with 503, and the connection ends. */
  readonly pipelinedMax: number;
  readonly backlog: number;
}

/** Those that no flag sets; Triton's where it has one. */
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
