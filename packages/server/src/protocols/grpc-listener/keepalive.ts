/** The keepalive flags of `serve`, with the same meaning as in gRPC's core. */
export interface KeepaliveOptions {
  /** Interval of the server's pings on an idle connection; `timeoutMs` is the time within which a reply must arrive. */
  readonly timeMs: number;
  readonly timeoutMs: number;
  /** True if connections without calls are pinged too. */
  readonly permitWithoutCalls: boolean;
  /**
   * Minimum interval of a client's pings. A shorter interval is a strike. After `pingStrikesMax` strikes (0: unlimited) the connection is
   * closed.
   */
  readonly receivedPingIntervalMinMs: number;
  readonly pingStrikesMax: number;
  /**
   * Maximum age of a connection; null for no limit. At this age the server asks the client to reconnect, and closes the connection after
   * the grace time.
   */
  readonly connectionAgeMaxMs: number | null;
  readonly connectionAgeGraceMs: number | null;
}

/** Minimum interval of a client's pings without a call, as in gRPC's core, unless the server permits them: two hours. */
const idlePingIntervalMs = 7_200_000;

/** Size of a reply to a ping, in bytes. */
const pingAckBytes = 17;

/**
 * Counts the pings of one client that arrive too fast. As in gRPC's core, any data that the server sends, except replies to pings, resets
 * the count, because clients that receive data use pings to measure the connection.
 */
export class PingStrikes {
  readonly #options: KeepaliveOptions;
  #strikes = 0;
  #lastNs = Number.NEGATIVE_INFINITY;
  #pings = 0;
  /** Bytes that the connection had sent at the last ping, without replies to pings. */
  #sentBytes = 0;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
  }

  /** Counts a ping. `sentBytes` is the number of all bytes that the connection has sent. Returns true if there were too many pings. */
  pinged(nowNs: number, hasCalls: boolean, sentBytes: number): boolean {
    // Replies that are not sent yet can make this number too small, but never too large.
    const besidesAnswers = sentBytes - this.#pings++ * pingAckBytes;
    if (besidesAnswers > this.#sentBytes) {
      this.#sentBytes = besidesAnswers;
      this.#strikes = 0;
      this.#lastNs = Number.NEGATIVE_INFINITY;
    }
    const { receivedPingIntervalMinMs, pingStrikesMax, permitWithoutCalls } = this.#options;
    const intervalMs = hasCalls || permitWithoutCalls ? receivedPingIntervalMinMs : idlePingIntervalMs;
    const isEarly = nowNs - this.#lastNs < intervalMs * 1e6;
    this.#lastNs = nowNs;
    if (!isEarly) return false;
    this.#strikes++;
    return pingStrikesMax > 0 && this.#strikes > pingStrikesMax;
  }
}
