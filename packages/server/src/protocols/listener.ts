/** An open front end. */
export interface Listener {
  /** The port that was bound; 0 for a Unix socket. */
  readonly port: number;
  /** Number of requests in progress. */
  readonly activeCount: number;
  /**
   * Rejects new connections, closes those without a request, completes running requests, and resolves when every connection has ended.
   * When `deadline` aborts, the remaining connections are closed.
   */
  close(deadline: AbortSignal): Promise<void>;
}
