import type { AlgorithmAnswer, AlgorithmRequest } from "../algorithms/index.ts";
import { assert, type Clock, InferenceError } from "@galatea/base";
import type { AlgorithmSource } from "./algorithm-models.ts";
import { AlgorithmThread } from "./algorithm-thread.ts";
import type { AlgorithmReply } from "./algorithm-worker.ts";
import { chooseThread, type ThreadCounts, type ThreadState } from "./choose-thread.ts";

export interface AlgorithmThreadsOptions extends ThreadCounts {
  /** Time limit of reading a model, or responding to a request; then its thread ends. */
  readonly orderMsMax: number;
  /** Time after which orders no longer wait for a busy thread, but use another one. */
  readonly patienceMs: number;
  readonly clock: Clock;
}

/** A model that is loaded in one of the threads. Disposing it unloads it. */
export interface LoadedAlgorithm extends AsyncDisposable {
  readonly memoryBytes: number;
  /** Handles one request at a time, whose bytes are transferred. Rejects with InferenceError when no thread responds. */
  answer(request: AlgorithmRequest): Promise<AlgorithmAnswer>;
}

interface Member {
  readonly thread: AlgorithmThread;
  readonly models: Set<number>;
  at: ThreadState["at"];
  /** Timer of a busy thread, until it is slow. */
  patience: Disposable | null;
}

interface Held {
  readonly model: number;
  readonly source: AlgorithmSource;
  home: Member | null;
}

interface Waiter {
  readonly held: Held;
  readonly take: (member: Member) => void;
  readonly refuse: (error: InferenceError) => void;
}

/**
 * A few threads for many models of algorithms. Each model is loaded in one of them; models of a thread are called one after another. A
 * slow order keeps its thread; the thread's other models are loaded again in another one. When a thread ends, its models are loaded again
 * before their next response.
 */
export class AlgorithmThreads implements AsyncDisposable {
  readonly #options: AlgorithmThreadsOptions;
  #members: Member[] = [];
  /** In order of arrival; at most one for each model. */
  readonly #waiting = new Set<Waiter>();
  #nextModel = 1;
  #isClosed = false;

  constructor(options: AlgorithmThreadsOptions) {
    this.#options = options;
  }

  get threadCount(): number {
    return this.#members.length;
  }

  /** Rejects with InferenceError for invalid files, and with the signal's reason. */
  async load(source: AlgorithmSource, signal: AbortSignal): Promise<LoadedAlgorithm> {
    const held: Held = { model: this.#nextModel++, source, home: null };
    signal.throwIfAborted();
    const memoryBytes = await this.#inTurn(held, (member) => this.#readIn(member, held));
    return {
      memoryBytes,
      answer: (request) =>
        this.#inTurn(held, async (member) => {
          if (held.home !== member) await this.#readIn(member, held);
          const transfer = [request.bytes.buffer as ArrayBuffer];
          const order = { kind: "answer", model: held.model, request } as const;
          const reply = await member.thread.order(order, { ...this.#options, transfer });
          if (reply.outcome !== "answered") throw unexpected(reply);
          return reply.answer;
        }),
      [Symbol.asyncDispose]: () => {
        this.#takeOut(held);
        return Promise.resolve();
      },
    };
  }

  /** Loads the model in that thread, and unloads it from its previous one. */
  async #readIn(member: Member, held: Held): Promise<number> {
    const { model, source } = held;
    const reply = await member.thread.order({ kind: "load", model, source }, { ...this.#options, transfer: [] });
    if (reply.outcome !== "loaded") throw unexpected(reply);
    this.#takeOut(held);
    held.home = member;
    member.models.add(model);
    return reply.memoryBytes;
  }

  #takeOut(held: Held): void {
    held.home?.thread.forget(held.model);
    held.home?.models.delete(held.model);
    held.home = null;
  }

  /** Runs the work with exclusive use of a thread. */
  async #inTurn<Result>(held: Held, work: (member: Member) => Promise<Result>): Promise<Result> {
    const turn = Promise.withResolvers<Member>();
    this.#waiting.add({ held, take: turn.resolve, refuse: turn.reject });
    this.#giveTurns();
    const member = await turn.promise;
    try {
      return await work(member);
    } finally {
      this.#move(member, "free");
      this.#giveTurns();
    }
  }

  /** Assigns threads in order of arrival; an order that finds none does not block later ones. */
  #giveTurns(): void {
    this.#members = this.#members.filter(({ thread }) => !thread.hasEnded);
    if (this.#isClosed) return this.#refuseWaiters();
    let states = this.#states();
    for (const waiter of this.#waiting) {
      const home = waiter.held.home === null ? -1 : this.#members.indexOf(waiter.held.home);
      const choice = chooseThread(states, home === -1 ? null : home, this.#options);
      if (choice.take === "nothing yet") continue;
      const member = choice.take === "new" ? this.#started() : this.#members[choice.index];
      assert(member !== undefined, "the chosen thread is one of the threads");
      this.#waiting.delete(waiter);
      this.#move(member, "busy");
      states = this.#states();
      waiter.take(member);
    }
  }

  #refuseWaiters(): void {
    const error = new InferenceError("UNAVAILABLE", "the model did not respond: its container is stopping");
    for (const { refuse } of this.#waiting) refuse(error);
    this.#waiting.clear();
  }

  #states(): readonly ThreadState[] {
    return this.#members.map(({ at, models }) => ({ at, modelCount: models.size }));
  }

  #started(): Member {
    const member: Member = { thread: new AlgorithmThread(), models: new Set(), at: "free", patience: null };
    this.#members.push(member);
    return member;
  }

  #move(member: Member, to: ThreadState["at"]): void {
    member.patience?.[Symbol.dispose]();
    member.at = to;
    member.patience =
      to !== "busy"
        ? null
        : this.#options.clock.timer(this.#options.patienceMs, () => {
            this.#move(member, "slow");
            this.#giveTurns();
          });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#giveTurns();
    await Promise.all(this.#members.map(({ thread }) => thread[Symbol.asyncDispose]()));
  }
}

function unexpected(reply: AlgorithmReply): InferenceError {
  if (reply.outcome === "failed") return new InferenceError(reply.code, reply.message);
  return new InferenceError("INTERNAL", `unexpected reply '${reply.outcome}' of the model's worker thread`);
}
