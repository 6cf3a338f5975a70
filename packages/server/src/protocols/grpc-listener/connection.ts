import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "@galatea/base";
import type { Call } from "./call.ts";
import type { ClientResets } from "./client-resets.ts";
import { ReadBuffers } from "./read-buffers.ts";
import { PingStrikes, type KeepaliveOptions } from "./keepalive.ts";
import { retainNativeSession } from "./session-lifetime.ts";

export interface ConnectionOptions {
  readonly session: ServerHttp2Session;
  readonly socket: Socket;
  readonly keepalive: KeepaliveOptions;
  readonly prefaceTimeoutMs: number;
  readonly windowBytes: number;
  readonly clock: Clock;
  /** Reset counts of all connections of the listener. */
  readonly resets: ClientResets;
}

/** Time in milliseconds for running calls to end when their connection is closed because of too many resets. */
const closeGraceMs = 1000;

/** One client's connection: its calls, its maximum age, and its keepalive pings. */
export class Connection {
  readonly reads = new ReadBuffers();
  readonly #options: ConnectionOptions;
  readonly #session: ServerHttp2Session;
  #callCount = 0;
  readonly #strikes: PingStrikes;
  readonly #address: string;
  /** True while the connection closes because its client has reset too many calls. */
  #isEnding = false;
  readonly #timers = new Set<Disposable>();
  #ping: Disposable | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { session, keepalive, prefaceTimeoutMs, windowBytes } = options;
    this.#session = session;
    this.#address = options.socket.remoteAddress ?? "";
    this.#strikes = new PingStrikes(keepalive);
    retainNativeSession(session);
    session.setLocalWindowSize(windowBytes);
    const preface = this.#after(prefaceTimeoutMs, () => session.destroy());
    session.once("remoteSettings", () => preface[Symbol.dispose]());
    session.on("ping", () => {
      const { bytesWritten } = session.socket;
      if (!this.#strikes.pinged(options.clock.monotonicNs(), this.#callCount > 0, bytesWritten)) return;
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
      session.close();
    });
    session.once("close", () => this.#onClose());
    // An error of the connection ends its calls. The stream of each call reports the error to the call.
    session.on("error", () => session.destroy());
    this.#grow();
    this.#watch();
  }

  get callCount(): number {
    return this.#callCount;
  }

  add(call: Call): void {
    this.#callCount++;
    call.onClosed(() => {
      this.#callCount--;
      if (this.#callCount > 0) return;
      this.reads.forget();
      if (this.#isEnding) this.#endSocket();
    });
  }

  /** Counts the stream as a reset call if the client ends it before its response was sent. */
  watchReset(stream: ServerHttp2Stream, call: Call | null): void {
    const { clock, resets } = this.#options;
    const startNs = clock.monotonicNs();
    stream.once("close", () => {
      // Calls that end with their connection, or that the server has ended, do not count as resets.
      if (this.#session.destroyed || call?.isCutOff === true) return;
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR && stream.writableFinished) return;
      const ranMs = (clock.monotonicNs() - startNs) / 1e6;
      const verdict = resets.count(this.#address, { ranMs, deadlineMs: call?.timeoutMs ?? null });
      if (verdict === "keep") return;
      // A GOAWAY without an error makes clients reconnect, and lets their running calls complete.
      if (!this.#isEnding) {
        this.#isEnding = true;
        this.close();
        this.#after(closeGraceMs, () => this.#endSocket());
      }
      // Ends the socket instead of the HTTP/2 session, which would continue to read from the client.
      if (verdict === "destroy" || this.#callCount === 0) this.#endSocket();
    });
  }

  /** Ends the socket after the current read; Node crashes when a session is destroyed during a read. */
  #endSocket(): void {
    const { socket } = this.#options;
    setImmediate(() => socket.destroySoon());
  }

  /** Accepts no new calls. The connection ends when the running calls have ended. */
  close(): void {
    this.#session.close();
  }

  destroy(): void {
    this.#session.destroy();
  }

  /**
   * Limits the age of the connection. Without this, clients behind a load balancer that never reconnect would use the same server for ever.
   */
  #grow(): void {
    const { connectionAgeMaxMs, connectionAgeGraceMs } = this.#options.keepalive;
    if (connectionAgeMaxMs === null) return;
    this.#after(connectionAgeMaxMs, () => {
      this.close();
      if (connectionAgeGraceMs !== null) this.#after(connectionAgeGraceMs, () => this.destroy());
    });
  }

  /**
   * Sends pings, and ends the connection if a ping gets no reply. Without this, a peer that has disappeared without closing the connection
   * would keep its resources.
   */
  #watch(): void {
    const { clock, keepalive } = this.#options;
    this.#ping = clock.timer(keepalive.timeMs, () => {
      this.#watch();
      if (this.#callCount === 0 && !keepalive.permitWithoutCalls) return;
      if (this.#session.destroyed || this.#session.closed) return;
      const executionTimeout = this.#after(keepalive.timeoutMs, () => this.destroy());
      this.#session.ping(() => executionTimeout[Symbol.dispose]());
    });
  }

  #after(delayMs: number, fire: () => void): Disposable {
    const timer = this.#options.clock.timer(delayMs, () => {
      this.#timers.delete(handle);
      fire();
    });
    const handle: Disposable = {
      [Symbol.dispose]: () => {
        this.#timers.delete(handle);
        timer[Symbol.dispose]();
      },
    };
    this.#timers.add(handle);
    return handle;
  }

  #onClose(): void {
    for (const timer of this.#timers) timer[Symbol.dispose]();
    this.#ping?.[Symbol.dispose]();
  }
}
