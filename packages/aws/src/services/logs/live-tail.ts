import { AwsError, delay, type Clock } from "@galatea/base";
import type { LogFollower, LogStreams } from "@galatea/hosting";

/** The logs that a session follows. */
export interface TailedLogs {
  readonly groups: ReadonlySet<string>;
  readonly includesStream: (stream: string) => boolean;
  readonly matches: (message: string) => boolean;
}

export interface TailedEvent {
  readonly group: string;
  readonly stream: string;
  readonly timestampMs: number;
  readonly ingestedMs: number;
  readonly message: string;
}

/** The events of about one second. `isSampled` is true if some events are omitted. */
export interface TailUpdate {
  readonly events: readonly TailedEvent[];
  readonly isSampled: boolean;
}

export interface LiveTailsOptions {
  readonly store: Pick<LogStreams, "follow">;
  readonly clock: Clock;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;
}

/** Limits of CloudWatch Logs. */
const sessionsMax = 15;
const eventsMax = 500;
const updateMs = 1000;
const sessionMs = 3 * 3_600_000;
/** Maximum length of the messages of one update. */
const updateLengthMax = 1024 * 1024;
/**
 * Maximum length of the messages that are compared with the pattern between two updates. Further messages are skipped.
 */
const comparedLengthMax = 4 * 1024 * 1024;

/** The sessions of StartLiveTail. */
export class LiveTails {
  readonly #options: LiveTailsOptions;
  #sessionCount = 0;

  constructor(options: LiveTailsOptions) {
    this.#options = options;
  }

  /**
   * Opens a session, which yields an update of new events each second until the signal aborts. Throws AwsError for too
   * many sessions. The iteration throws AwsError when the session exceeds its time limit or the platform stops.
   */
  open(tailed: TailedLogs, signal: AbortSignal): AsyncIterable<TailUpdate> {
    if (this.#sessionCount >= sessionsMax) {
      const text = `Live tail session limit (${sessionsMax}) reached.`;
      throw new AwsError("LimitExceededException", text);
    }
    const next = new PendingUpdate(tailed, this.#options.clock);
    const following = this.#options.store.follow(next);
    this.#sessionCount += 1;
    let isOpen = true;
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      this.#sessionCount -= 1;
      following[Symbol.dispose]();
    };
    // Also closes a session whose updates are never read.
    signal.addEventListener("abort", close, { once: true });
    return this.#updates(next, signal, close);
  }

  async *#updates(next: PendingUpdate, signal: AbortSignal, close: () => void): AsyncGenerator<TailUpdate, void> {
    const { clock, stopping } = this.#options;
    const untilMs = clock.epochMs() + sessionMs;
    const ends = AbortSignal.any([signal, stopping]);
    try {
      while (clock.epochMs() < untilMs) {
        await delay(clock, updateMs, ends);
        yield next.taken();
      }
    } catch (error) {
      if (signal.aborted || !stopping.aborted) throw error;
      throw new AwsError(
        "SessionStreamingException",
        "The live tail session ended because the platform is shutting down. Start a new session after the restart.",
      );
    } finally {
      signal.removeEventListener("abort", close);
      close();
    }
    throw new AwsError("SessionTimeoutException", "The live tail session has lasted for three hours.");
  }
}

/** The events that a session's next update will contain. Its size is bounded. */
class PendingUpdate implements LogFollower {
  readonly #tailed: TailedLogs;
  readonly #clock: Clock;
  #events: TailedEvent[] = [];
  #length = 0;
  #comparedLength = 0;
  #isSampled = false;

  constructor(tailed: TailedLogs, clock: Clock) {
    this.#tailed = tailed;
    this.#clock = clock;
  }

  wants(group: string, stream: string): boolean {
    return this.#tailed.groups.has(group) && this.#tailed.includesStream(stream);
  }

  receive(group: string, stream: string, events: Parameters<LogFollower["receive"]>[2]): void {
    const ingestedMs = this.#clock.epochMs();
    for (const { timestampMs, message } of events) {
      if (this.#comparedLength >= comparedLengthMax) {
        this.#isSampled = true;
        return;
      }
      this.#comparedLength += message.length;
      if (!this.#tailed.matches(message)) continue;
      const isFull = this.#events.length === eventsMax || this.#length + message.length > updateLengthMax;
      this.#isSampled ||= isFull;
      if (isFull) continue;
      this.#length += message.length;
      this.#events.push({ group, stream, timestampMs, ingestedMs, message });
    }
  }

  taken(): TailUpdate {
    const update = { events: this.#events, isSampled: this.#isSampled };
    this.#events = [];
    this.#length = 0;
    this.#comparedLength = 0;
    this.#isSampled = false;
    return update;
  }
}
