/** The keepalive flags of `serve`, under the meaning that gRPC's core gives them. */
export interface KeepaliveOptions {
  /** How often an idle peer is pinged, and how long its answer may take. */
  readonly timeMs: number;
  readonly timeoutMs: number;
  /** Whether a connection without a call is pinged too. */
  readonly permitWithoutCalls: boolean;
  /** Pings of a client that come faster than this are strikes; beyond `pingStrikesMax` (0: any number) the connection is closed. */
  readonly receivedPingIntervalMinMs: number;
  readonly pingStrikesMax: number;
  /** A connection is asked to end at this age, and ended this much later; null: it may grow as old as it likes. */
  readonly connectionAgeMaxMs: number | null;
  readonly connectionAgeGraceMs: number | null;
}

/** Without a call gRPC's core allows a client one ping in two hours, unless the server permits pings without calls. */
const idlePingIntervalMs = 7_200_000;

/** The bytes that the answer to a ping takes on the wire. */
const pingAnswerBytes = 17;

/**
 * Counts the pings of one client that come too fast. As in gRPC's core, any data that the server sends, other than answers to pings,
 * resets the count: clients measure a connection by pings while they receive.
 */
export class PingStrikes {
  readonly #options: KeepaliveOptions;
  #strikes = 0;
  #lastNs = Number.NEGATIVE_INFINITY;
  #pings = 0;
  /** Bytes sent besides the answers to pings, as the last pings found them. */
  #sentBytes = 0;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
  }

  /** Counts a ping. `sentBytes` is all that the connection has sent. Returns whether the ping is one too many. */
  pinged(nowNs: number, hasCalls: boolean, sentBytes: number): boolean {
    // Answers that have not left yet make this less than it is, never more.
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
