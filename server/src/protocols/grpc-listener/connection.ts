import { constants, type ServerHttp2Session } from "node:http2";
import type { Clock } from "../../base/index.ts";
import type { Call } from "./call.ts";
import { ReadMemory } from "./read-memory.ts";
import { PingStrikes, type KeepaliveOptions } from "./keepalive.ts";

export interface ConnectionOptions {
  readonly session: ServerHttp2Session;
  readonly keepalive: KeepaliveOptions;
  readonly prefaceTimeoutMs: number;
  readonly windowBytes: number;
  readonly clock: Clock;
}

/** One client's connection: its calls, its age, and whether it is alive. */
export class Connection {
  readonly reads = new ReadMemory();
  readonly #options: ConnectionOptions;
  readonly #session: ServerHttp2Session;
  readonly #calls = new Set<Call>();
  readonly #strikes: PingStrikes;
  readonly #timers = new Set<Disposable>();
  #ping: Disposable | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { session, keepalive, prefaceTimeoutMs, windowBytes } = options;
    this.#session = session;
    this.#strikes = new PingStrikes(keepalive);
    session.setLocalWindowSize(windowBytes);
    const preface = this.#after(prefaceTimeoutMs, () => session.destroy());
    session.once("remoteSettings", () => preface[Symbol.dispose]());
    session.on("ping", () => {
      const { bytesWritten } = session.socket;
      if (!this.#strikes.pinged(options.clock.monotonicNs(), this.#calls.size > 0, bytesWritten)) return;
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
      session.close();
    });
    session.once("close", () => this.#onClose());
    // What breaks a connection ends its calls, each by its own stream.
    session.on("error", () => session.destroy());
    this.#grow();
    this.#watch();
  }

  get callCount(): number {
    return this.#calls.size;
  }

  add(call: Call): void {
    this.#calls.add(call);
    call.onClosed(() => {
      this.#calls.delete(call);
      if (this.#calls.size === 0) this.reads.forget();
    });
  }

  /** Takes no new calls, and ends when those it has have ended. */
  close(): void {
    this.#session.close();
  }

  destroy(): void {
    this.#session.destroy();
  }

  /** Clients that never reconnect would stay with an old server behind a load balancer for ever. */
  #grow(): void {
    const { connectionAgeMaxMs, connectionAgeGraceMs } = this.#options.keepalive;
    if (connectionAgeMaxMs === null) return;
    this.#after(connectionAgeMaxMs, () => {
      this.close();
      if (connectionAgeGraceMs !== null) this.#after(connectionAgeGraceMs, () => this.destroy());
    });
  }

  /** A peer that is gone without a word is found by the pings that it does not answer. */
  #watch(): void {
    const { clock, keepalive } = this.#options;
    this.#ping = clock.timer(keepalive.timeMs, () => {
      this.#watch();
      if (this.#calls.size === 0 && !keepalive.permitWithoutCalls) return;
      if (this.#session.destroyed || this.#session.closed) return;
      const overdue = this.#after(keepalive.timeoutMs, () => this.destroy());
      this.#session.ping(() => overdue[Symbol.dispose]());
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
