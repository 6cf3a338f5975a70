import { ChangeNotifier, rejectOnAbort, unreachable } from "@galatea/base";
import { InstanceFailure } from "../instances/index.ts";
import type { AgentEvent, InstanceEvent, LostEvents } from "./agent-events.ts";
import type { EventReadOptions } from "./instance-agent.ts";

/** Limits for the events that are kept for all readers together. */
export interface EventLogLimits {
  readonly eventsMax: number;
  /** Maximum characters of texts whose length containers or callers determine: log lines, failures and model names. */
  readonly charsMax: number;
}

export const eventLogLimits: EventLogLimits = { eventsMax: 16_384, charsMax: 4 * 2 ** 20 };

/**
 * A ring buffer of an agent's newest events, which all readers share. A slow reader does not delay others and needs no
 * additional memory. It gets a `lost` event instead of the events that were overwritten. No events are kept before the
 * first reader.
 */
export class EventLog {
  readonly #limits: EventLogLimits;
  readonly #appended = new ChangeNotifier();
  /** Ring buffer. The event with sequence number `seq` is at index `seq % eventsMax`. */
  readonly #ring: (AgentEvent | undefined)[] = [];
  #seq: number;
  #oldestSeq: number;
  #chars = 0;
  #isRead = false;

  /**
   * `startMs` is the epoch time at which the agent started. Sequence numbers begin at `startMs * 1000`. They are
   * therefore above those of the previous run, unless the clock was set back.
   */
  constructor(limits: EventLogLimits, startMs: number) {
    this.#limits = limits;
    this.#seq = startMs * 1000;
    this.#oldestSeq = this.#seq + 1;
  }

  /** Sequence number of the newest event. */
  get seq(): number {
    return this.#seq;
  }

  append(instanceId: string, event: InstanceEvent): void {
    const seq = (this.#seq += 1);
    if (!this.#isRead) {
      this.#oldestSeq = seq + 1;
      return;
    }
    const { eventsMax, charsMax } = this.#limits;
    if (seq - this.#oldestSeq >= eventsMax) this.#forgetOldest();
    this.#ring[seq % eventsMax] = { ...event, seq, instanceId };
    this.#chars += charsOf(event);
    while (this.#chars > charsMax && this.#oldestSeq < seq) this.#forgetOldest();
    this.#appended.notify();
  }

  async *read({ after = this.#seq, signal }: EventReadOptions): AsyncGenerator<AgentEvent | LostEvents, void> {
    this.#isRead = true;
    // A number above the newest one is from another run of the agent: the reader gets `lost`.
    let seq = after > this.#seq ? 0 : after;
    for (;;) {
      signal.throwIfAborted();
      if (seq + 1 < this.#oldestSeq) {
        seq = this.#seq;
        yield { kind: "lost", seq };
        continue;
      }
      const event = seq < this.#seq ? this.#ring[(seq + 1) % this.#limits.eventsMax] : undefined;
      if (event === undefined) {
        await rejectOnAbort(this.#appended.nextChange(), signal);
        continue;
      }
      seq += 1;
      yield event;
    }
  }

  #forgetOldest(): void {
    const index = this.#oldestSeq % this.#limits.eventsMax;
    const oldest = this.#ring[index];
    if (oldest !== undefined) this.#chars -= charsOf(oldest);
    this.#ring[index] = undefined;
    this.#oldestSeq += 1;
  }
}

function charsOf(event: InstanceEvent): number {
  switch (event.kind) {
    case "line":
      return event.text.length;
    case "model":
      return event.model.target.length;
    case "model-timed":
    case "outdated":
      return event.target.length;
    case "health": {
      const { failure, lastLines, unconfined } = event.health;
      return charsOfAll([failure, ...lastLines, ...Object.entries(unconfined ?? {}).flat()]);
    }
    case "ended": {
      const { error } = event;
      return charsOfAll([error?.message ?? "", ...(error instanceof InstanceFailure ? error.lastLines : [])]);
    }
    case "model-used":
    case "memory":
      return 0;
    default:
      return unreachable(event);
  }
}

const charsOfAll = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);
