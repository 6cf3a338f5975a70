/** What a front end that was opened is to whoever closes it. */
export interface Listener {
  /** The port that was bound; 0 for a Unix socket. */
  readonly port: number;
  /** Requests being answered now. */
  readonly activeCount: number;
  /**
   * Refuses new connections, closes those without a request, answers what has begun, and resolves when every connection has ended.
   * When `deadline` aborts, what is left is cut off.
   */
  close(deadline: AbortSignal): Promise<void>;
}
