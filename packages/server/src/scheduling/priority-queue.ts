import type { InferenceRequest } from "../inference/index.ts";
import type { DynamicBatchingConfig, QueuePolicy } from "../modelconfig/index.ts";
import { queueDeadlineNs, type CandidateQueue } from "./batch-policy.ts";
import { DeadlineHeap } from "./deadline-heap.ts";
import type { QueuedRequest } from "./queued-request.ts";
import { RequestList } from "./request-list.ts";

interface Level {
  readonly policy: QueuePolicy;
  readonly waiting: RequestList<QueuedRequest>;
  /** Requests that timed out under DELAY: served after all others of the level. */
  readonly delayed: RequestList<QueuedRequest>;
}

/** The waiting requests of a dynamic batcher: strict priority levels, each with its own queue policy. */
export class PriorityQueue implements CandidateQueue<QueuedRequest> {
  readonly #levels: readonly Level[];
  readonly #defaultLevel: number;
  readonly #deadlines = new DeadlineHeap();
  length = 0;

  constructor(scheduling: DynamicBatchingConfig) {
    const levelCount = Math.max(1, scheduling.priorityLevels);
    this.#levels = Array.from({ length: levelCount }, (_, index) => ({
      policy:
        (scheduling.priorityLevels > 0 ? scheduling.priorityQueuePolicy.get(index + 1) : undefined) ??
        scheduling.defaultQueuePolicy,
      waiting: new RequestList<QueuedRequest>(),
      delayed: new RequestList<QueuedRequest>(),
    }));
    this.#defaultLevel = scheduling.priorityLevels > 0 ? scheduling.defaultPriorityLevel - 1 : 0;
  }

  /** Returns the priority level of a request. Priority 0, and unknown levels, select the default level. */
  levelOf(request: InferenceRequest): number {
    const inRange = request.priority >= 1 && request.priority <= this.#levels.length;
    return inRange ? request.priority - 1 : this.#defaultLevel;
  }

  isFull(level: number): boolean {
    const { policy, waiting, delayed } = this.#levels[level] as Level;
    return policy.queueLengthMax > 0 && waiting.length + delayed.length >= policy.queueLengthMax;
  }

  /** Returns the earliest deadline; null when no waiting request has one. */
  nextDeadlineNs(): number | null {
    return this.#deadlines.top?.deadlineNs ?? null;
  }

  add(queued: QueuedRequest, level: number): void {
    const { policy, waiting } = this.#levels[level] as Level;
    queued.level = level;
    waiting.append(queued);
    this.length++;
    queued.deadlineNs = queueDeadlineNs(policy, queued.record.queuedNs, queued.request.deadlineNs);
    this.#addDeadline(queued);
  }

  /** Puts a removed request back into the queue, with its previous deadline. */
  putBack(queued: QueuedRequest): void {
    queued.list?.putBack(queued);
    this.length++;
    const { waiting } = this.#levels[queued.level] as Level;
    if (queued.list === waiting) this.#addDeadline(queued);
  }

  #addDeadline(queued: QueuedRequest): void {
    if (queued.deadlineNs < Number.POSITIVE_INFINITY) this.#deadlines.add(queued);
  }

  remove(queued: QueuedRequest): void {
    this.#deadlines.remove(queued);
    queued.list?.remove(queued);
    this.length--;
  }

  /** Moves timed-out requests to the end of their level, or removes and returns them, by the level's policy. */
  expire(nowNs: number): readonly QueuedRequest[] {
    let rejected: QueuedRequest[] | null = null;
    for (let top = this.#deadlines.top; top !== null && top.deadlineNs <= nowNs; top = this.#deadlines.top) {
      const { policy, delayed } = this.#levels[top.level] as Level;
      if (policy.timeoutAction === "DELAY") {
        this.#deadlines.remove(top);
        top.list?.remove(top);
        delayed.append(top);
      } else {
        this.remove(top);
        rejected ??= [];
        rejected.push(top);
      }
    }
    return rejected ?? noRequests;
  }

  first(): QueuedRequest | null {
    return this.#firstFrom(0);
  }

  after(queued: QueuedRequest): QueuedRequest | null {
    if (queued.next !== null) return queued.next;
    const { waiting, delayed } = this.#levels[queued.level] as Level;
    if (queued.list === waiting && delayed.first !== null) return delayed.first;
    return this.#firstFrom(queued.level + 1);
  }

  #firstFrom(level: number): QueuedRequest | null {
    for (let index = level; index < this.#levels.length; index++) {
      const { waiting, delayed } = this.#levels[index] as Level;
      const first = waiting.first ?? delayed.first;
      if (first !== null) return first;
    }
    return null;
  }
}

const noRequests: readonly QueuedRequest[] = [];
