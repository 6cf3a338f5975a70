/** An open network listener of a protocol. */
export interface Listener {
  /** The port that was bound; 0 for a Unix socket. */
  readonly port: number;
  /** Number of requests in progress. */
  readonly activeCount: number;
  /**
   * Shuts the listener down: rejects new connections, closes idle ones, and resolves when running requests have completed. When `deadline`
   * aborts, the remaining connections are closed.
   */
  close(deadline: AbortSignal): Promise<void>;
}
