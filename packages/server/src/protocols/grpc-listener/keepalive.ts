/** The keepalive flags of `serve`, with the meaning that gRPC's core gives them. */
export interface KeepaliveOptions {
  /** Interval of pings to an idle peer, and the time limit of its replies. */
  readonly timeMs: number;
  readonly timeoutMs: number;
  /** True to ping connections without calls too. */
  readonly permitWithoutCalls: boolean;
  /** Pings of a client at shorter intervals are strikes; over `pingStrikesMax` (0: unlimited) the connection is closed. */
  readonly receivedPingIntervalMinMs: number;
  readonly pingStrikesMax: number;
  /** At this age a connection is asked to end, and ended this much later; null: no limit. */
  readonly connectionAgeMaxMs: number | null;
  readonly connectionAgeGraceMs: number | null;
}

/** Without a call gRPC's core allows a client one ping in two hours, unless the server permits pings without calls. */
const idlePingIntervalMs = 7_200_000;

/** Size of the reply to a ping. */
const pingAnswerBytes = 17;

/**
 * Counts the pings of one client that come too fast. As in gRPC's core, any data that the server sends, other than replies to pings,
 * resets the count: clients measure a connection by pings while they receive.
 */
export class PingStrikes {
  readonly #options: KeepaliveOptions;
  #strikes = 0;
  #lastNs = Number.NEGATIVE_INFINITY;
  #pings = 0;
  /** Bytes sent, without replies to pings, at the last ping. */
  #sentBytes = 0;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
  }

  /** Counts a ping. `sentBytes` are all bytes that the connection has sent. Returns whether the ping is one too many. */
  pinged(nowNs: number, hasCalls: boolean, sentBytes: number): boolean {
    // Pending replies make this less than it is, never more.
    const besidesAnswers = sentBytes - this.#pings++ * pingAnswerBytes;
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
