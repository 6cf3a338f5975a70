import type { Clock } from "../base/index.ts";
import type { Wait } from "./settled.ts";

/** Who asks how something is, as far as that is told. */
export interface Asker {
  /** What one program's questions have in common, and other programs' may. */
  readonly name: string;
  readonly connection: { readonly destroyed: boolean };
  /** A waiter: it asks for nothing but whether a state is there, and sleeps until it asks again. */
  readonly isWaiter: boolean;
  /** How long its question may be held while it is kept awake. */
  readonly awakeMsMax: number;
  /** Whether it may print between two questions what was logged meanwhile: nothing of that while one is held. */
  readonly printsLogs: boolean;
  /** How long it reads without a byte before it gives up, at least. */
  readonly quietMsMax: number;
  /** What the asker may be sent before its answer, so that it goes on reading: until disposed. Null for what it would not take. */
  readonly stayAwake: {
    /** The beginning of an answer that is no error. */
    readonly blanks: (() => Disposable) | null;
    /** Nothing of the answer, which may be an error still. */
    readonly interims: (() => Disposable) | null;
  };
  /** Aborts when the asker is gone. */
  readonly signal: AbortSignal;
}

/** A question of an asker about one thing. */
export interface HeldQuestion {
  readonly asker: Asker;
  /** Among all that may be asked about. */
  readonly subject: string;
  /** Whether what is asked about will be there when the wait is over, so that there is no error to be told. */
  readonly stays: boolean;
  /** Whether what is asked about has a log that people follow. */
  readonly isLogged: boolean;
  /**
   * Resolves when there is something to tell, or the wait is over: with whether more is to come. Where the answer may not fail, the wait
   * is over before what is asked about is gone.
   */
  readonly wait: (wait: Wait & { readonly mayFail: boolean }) => Promise<boolean>;
}

export interface HeldQuestionsLimits {
  /** Who pauses as long as this asks at a waiter's pace, and may be held for this long. */
  readonly waiterPauseMs: number;
  readonly waiterMsMax: number;
  readonly awakeCountMax: number;
  /** How long those are held who may print what is logged. */
  readonly printerMsMax: number;
  /** How long one is held whose asker left the last time: a proxy may keep from it what keeps it awake, or it reads for a few seconds only. */
  readonly shyMsMax: number;
  /** Answers that are remembered; the oldest are forgotten first. */
  readonly answersMax: number;
}

export const heldQuestionsLimits: HeldQuestionsLimits = {
  waiterPauseMs: 20_000,
  waiterMsMax: 600_000,
  awakeCountMax: 1000,
  printerMsMax: 20_000,
  shyMsMax: 5000,
  answersMax: 1000,
};

interface Remembered {
  readonly asked: string;
  readonly connection: Asker["connection"];
  readonly atMs: number;
  readonly hasLeft: boolean;
}

/**
 * How long a question may be held. Clients that wait for a state sleep for half a minute between questions, so theirs is kept until the
 * state is there, and they need not sleep again. People and programs that follow what happens ask every second or so, and are held for
 * no longer than they themselves paused since their last answer; a pause as long as a waiter's is one. Pauses are those of a connection, so that one program's do not count
 * for another's; programs that make a connection for each question are told by their names.
 */
export class HeldQuestions {
  readonly #clock: Clock;
  readonly #limits: HeldQuestionsLimits;
  /** The oldest first. */
  readonly #remembered: Remembered[] = [];
  #awakeCount = 0;

  constructor(clock: Clock, limits: HeldQuestionsLimits = heldQuestionsLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Resolves when the question is to be answered. */
  async hold({ asker, subject, stays, isLogged, wait }: HeldQuestion): Promise<void> {
    const { awakeCountMax } = this.#limits;
    const asked = `${asker.name} ${subject}`;
    const last = this.#forget(asked, asker.connection);
    const { blanks, interims } = asker.stayAwake;
    // Every client takes blanks, also through proxies.
    const fitting = stays && blanks !== null ? blanks : interims;
    const stayAwake = last?.hasLeft !== true && this.#awakeCount < awakeCountMax ? fitting : null;
    const longestMs = isLogged && asker.printsLogs ? this.#printerMs(last) : Infinity;
    const waitMsMax = Math.min(longestMs, this.#longestMs(asker, last, stayAwake !== null));
    const mayFail = stayAwake === null || stayAwake === interims;
    let more = true;
    try {
      more = await this.#awake(stayAwake, () => wait({ waitMsMax, signal: asker.signal, mayFail }));
    } finally {
      const hasLeft = asker.signal.aborted;
      if (more || hasLeft) this.#remember({ asked, connection: asker.connection, hasLeft });
    }
  }

  #longestMs({ isWaiter, awakeMsMax, quietMsMax }: Asker, last: Remembered | null, isAwake: boolean): number {
    const { waiterMsMax, waiterPauseMs, shyMsMax } = this.#limits;
    if (last?.hasLeft === true) return shyMsMax;
    const pausedMs = this.#pausedMs(last);
    if (pausedMs !== null && pausedMs >= waiterPauseMs) return isAwake ? waiterMsMax : quietMsMax;
    const longestMs = isAwake ? awakeMsMax : quietMsMax;
    return isWaiter || pausedMs === null ? longestMs : Math.min(pausedMs, longestMs);
  }

  /** The loops that do print ask twice a minute, and read the log meanwhile; those that do not ask every few seconds. */
  #printerMs(last: Remembered | null): number {
    const { waiterPauseMs, printerMsMax } = this.#limits;
    return (this.#pausedMs(last) ?? 0) >= waiterPauseMs ? 0 : printerMsMax;
  }

  #pausedMs(last: Remembered | null): number | null {
    return last === null ? null : Math.max(0, this.#clock.epochMs() - last.atMs);
  }

  async #awake<Value>(stayAwake: (() => Disposable) | null, act: () => Promise<Value>): Promise<Value> {
    if (stayAwake === null) return await act();
    this.#awakeCount += 1;
    try {
      using _awake = stayAwake();
      return await act();
    } finally {
      this.#awakeCount -= 1;
    }
  }

  /** What is known of this connection, or else of one that is gone. */
  #forget(asked: string, connection: Asker["connection"]): Remembered | null {
    const own = (each: Remembered) => each.asked === asked && each.connection === connection;
    const gone = (each: Remembered) => each.asked === asked && each.connection.destroyed;
    let index = this.#remembered.findLastIndex(own);
    if (index < 0) index = this.#remembered.findLastIndex(gone);
    return this.#remembered.splice(index, index < 0 ? 0 : 1)[0] ?? null;
  }

  #remember(answer: Omit<Remembered, "atMs">): void {
    this.#remembered.push({ ...answer, atMs: this.#clock.epochMs() });
    if (this.#remembered.length > this.#limits.answersMax) this.#remembered.shift();
  }
}
