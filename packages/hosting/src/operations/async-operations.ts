import { AwsError, delay, openDeadline, rejectOnAbort, TaskGroup, unreachable, type Clock } from "@galatea/base";
import { AsyncEndings, type AsyncEndingsOptions } from "./async-endings.ts";
import {
  emptyTrace,
  EndpointQueue,
  lostCountMax,
  invocationOf,
  nextAsyncState,
  queueKey,
  runInvocation,
  urlOf,
  type AsyncEvent,
  type AsyncInvocation,
  type AsyncState,
  type AsyncRequest,
  type AsyncTicket,
  type QueuedEntry,
  type RunEnd,
  type RunTrace,
} from "../async-inference/index.ts";
import { nameKey, type Owner } from "../definitions/index.ts";
import type { FleetOptions, RunningEndpoint } from "../endpoints/index.ts";
import { endpointNotFound } from "../invocations/index.ts";

export interface AsyncInferencesOptions extends AsyncEndingsOptions {
  readonly fleet: FleetOptions;
  readonly running: (name: string) => RunningEndpoint | undefined;
  readonly allRunning: () => Iterable<RunningEndpoint>;
  readonly newId: () => string;
  /** The clock of the intervals between samples. */
  readonly seriesClock: Clock;
}

/** Maximum number of attempts to read a record; with the pauses between them, they take a minute. */
const readsMax = 6;

/** The queues of all endpoints: they accept requests, and start them round robin. */
export class AsyncInferences implements AsyncDisposable {
  readonly #options: AsyncInferencesOptions;
  /** In round-robin order. */
  readonly #queues = new Map<string, EndpointQueue>();
  readonly #endings: AsyncEndings;
  readonly #tasks: TaskGroup;
  /** Number of failed reads of each record. */
  readonly #readCounts = new WeakMap<QueuedEntry, number>();
  #runningCount = 0;
  #acceptedCount = 0;

  constructor(options: AsyncInferencesOptions) {
    this.#options = options;
    this.#endings = new AsyncEndings(options);
    this.#tasks = new TaskGroup((error) => {
      options.fleet.logger.error("an asynchronous invocation ended unexpectedly", { error: String(error) });
    });
  }

  /** Queues the requests that previous runs have accepted. */
  async resume(): Promise<void> {
    const { asyncInvocations: kind } = this.#options.store.kinds;
    for await (const { key, value } of kind.all()) this.#queueOf(value.endpoint).waiting.push(entryOf(key, value));
    this.#tasks.run((closing) => this.#watch(closing));
    this.#tasks.run((closing) => this.#sample(closing));
  }

  /** Resolves when the request is recorded. Throws AwsError. */
  async accept(name: string, { accountId }: Owner, request: AsyncRequest): Promise<AsyncTicket> {
    const { store, newId, fleet } = this.#options;
    const { endpoints, asyncInvocations, asyncPayloads } = store.kinds;
    const id = newId();
    const nowMs = fleet.clock.epochMs();
    const key = `${String(nowMs).padStart(15, "0")} ${String((this.#acceptedCount += 1)).padStart(12, "0")} ${id}`;
    return await store.attempt(async () => {
      const found = await endpoints.find(nameKey(name));
      if (found.at !== "found") throw endpointNotFound(name, accountId);
      const invocation = invocationOf(found.value, request, { id, nowMs });
      const queue = this.#queueOf(invocation.endpoint);
      const entry = entryOf(key, invocation);
      using _reserved = this.#reserve(queue, entry);
      const { body } = request;
      await store.write([
        endpoints.check(nameKey(name), found.version),
        asyncInvocations.put(key, invocation, "absent"),
        ...(body === null ? [] : [asyncPayloads.put(key, body.toString("base64"), "absent")]),
      ]);
      queue.waiting.push(entry);
      this.#dispatch();
      const { inferenceId, output, failure } = invocation;
      return {
        inferenceId,
        outputUrl: output === null ? null : urlOf(output),
        failureUrl: failure === null ? null : urlOf(failure),
      };
    });
  }

  /** Cancels running requests; they wait again in the next run. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  #queueOf(endpoint: AsyncInvocation["endpoint"]): EndpointQueue {
    const key = queueKey(endpoint);
    const found = this.#queues.get(key);
    if (found !== undefined) return found;
    const made = new EndpointQueue(endpoint, this.#options.fleet);
    this.#queues.set(key, made);
    return made;
  }

  /** Throws where a queue is full. A request that is being recorded counts as accepted. */
  #reserve(queue: EndpointQueue, { inlineBytes }: QueuedEntry): Disposable {
    const { limits } = this.#options;
    let [allCount, allBytes] = [0, 0];
    for (const each of this.#queues.values()) {
      allCount += each.count;
      allBytes += each.inlineBytes;
    }
    const isFull =
      queue.count >= limits.requestsMax ||
      queue.inlineBytes + inlineBytes > limits.inlineBytesMax ||
      allCount >= limits.allRequestsMax ||
      allBytes + inlineBytes > limits.allInlineBytesMax;
    if (isFull) {
      const text =
        `Rate exceeded: ${queue.count} requests wait in the queue of endpoint ${queue.endpoint.name} ` +
        `(${allCount} in all queues), which is the maximum. Retry when some of them are processed.`;
      throw new AwsError("ThrottlingException", text, { statusFallback: 429 });
    }
    return queue.reserve(inlineBytes);
  }

  /** Polls for endpoints that start or are deleted and for requests that expire, and samples the queues. */
  async #watch(closing: AbortSignal): Promise<void> {
    const { store, fleet, limits } = this.#options;
    for (;;) {
      const changed = store.view.stateChanged();
      this.#look();
      using pause = openDeadline({ clock: fleet.clock, afterMs: limits.lookMs, signal: closing });
      await rejectOnAbort(changed, pause.signal).catch(() => closing.throwIfAborted());
    }
  }

  #look(): void {
    const { fleet, allRunning } = this.#options;
    const nowMs = fleet.clock.epochMs();
    // An endpoint without requests has metrics, too.
    for (const running of allRunning()) if (running.asyncInference !== null) this.#queueOf(running.queued);
    for (const [key, queue] of this.#queues) {
      const isOrphaned = this.#isOrphaned(queue);
      for (const entry of isOrphaned ? queue.waiting.takeAll() : queue.waiting.takeExpired(nowMs)) {
        this.#tasks.run((closing) => this.#fail(queue, entry, closing));
      }
      if (isOrphaned && queue.count === 0) this.#queues.delete(key);
    }
    this.#dispatch();
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { fleet, limits, seriesClock } = this.#options;
    for (;;) {
      const nowMs = fleet.clock.epochMs();
      for (const queue of this.#queues.values()) queue.sample(nowMs, this.#runningOf(queue)?.inServiceCount ?? 0);
      await delay(seriesClock, limits.sampleMs, closing);
    }
  }

  /** Returns the running endpoint of a queue. */
  #runningOf({ endpoint }: EndpointQueue): RunningEndpoint | undefined {
    const running = this.#options.running(endpoint.name);
    return running?.queued.createdMs === endpoint.createdMs ? running : undefined;
  }

  #isOrphaned({ endpoint }: EndpointQueue): boolean {
    const at = this.#options.store.view.endpointState(nameKey(endpoint.name));
    if (at === null || at === "Deleting" || at === "Failed") return true;
    const running = this.#options.running(endpoint.name);
    return running !== undefined && running.queued.createdMs !== endpoint.createdMs;
  }

  /** Starts waiting requests, one of each queue in turn, while the limits allow it. */
  #dispatch(): void {
    const { limits, fleet } = this.#options;
    const nowMs = fleet.clock.epochMs();
    for (let isBegun = true; isBegun;) {
      isBegun = false;
      // Iterates over a copy: a queue moves to the end when it is served, and must not be served twice in a round.
      for (const [key, queue] of Array.from(this.#queues)) {
        if (this.#runningCount >= limits.runningMax) return;
        const running = this.#runningOf(queue);
        if (running === undefined || !queue.mayBegin(running, nowMs)) continue;
        const entry = queue.waiting.take();
        if (entry === null) continue;
        // Moved behind all others.
        this.#queues.delete(key);
        this.#queues.set(key, queue);
        isBegun = true;
        this.#runningCount += 1;
        queue.runningCount += 1;
        this.#tasks.run(async (closing) => {
          try {
            await this.#run(queue, entry, running, closing);
          } finally {
            this.#runningCount -= 1;
            queue.runningCount -= 1;
            if (!closing.aborted) this.#dispatch();
          }
        });
      }
    }
  }

  async #run(queue: EndpointQueue, entry: QueuedEntry, running: RunningEndpoint, closing: AbortSignal): Promise<void> {
    const { fleet, store, limits } = this.#options;
    const found = await this.#read(queue, entry, closing);
    if (found === null) return;
    const nowMs = fleet.clock.epochMs();
    const before: AsyncState = { at: "waiting", lostCount: found.lostCount };
    const life = nextAsyncState(before, { kind: "taken", nowMs, expiresMs: found.expiresMs });
    if (life.at === "expired") return await this.#endings.over(queue, { entry, invocation: found }, { life, closing });
    const trace = emptyTrace();
    const record: EndpointQueue["metrics"]["record"] = (variant, metric, value) => {
      trace.times[metric] = value;
      queue.metrics.record(variant, metric, value);
    };
    record(running.variantName, "TimeInBacklog", nowMs - found.receivedMs);
    const parts = {
      store: fleet.store,
      inline: async () => {
        const payload = await store.kinds.asyncPayloads.find(entry.key);
        return payload.at === "found" ? Buffer.from(payload.value, "base64") : null;
      },
      invoke: running.invoke.bind(running),
      record: record.bind(null, running.variantName),
      trace,
      memory: fleet.requestMemory,
      bodyBytesMax: limits.bodyBytesMax,
      clock: fleet.clock,
    };
    const end = await runInvocation(found, parts, closing);
    await this.#ended(queue, entry, found, { life, end, trace, closing });
  }

  /** Records the outcome of a run: the request ends, or waits again. */
  async #ended(
    queue: EndpointQueue,
    entry: QueuedEntry,
    invocation: AsyncInvocation,
    {
      life,
      end,
      trace,
      closing,
    }: { readonly life: AsyncState; readonly end: RunEnd; readonly trace: RunTrace; readonly closing: AbortSignal },
  ): Promise<void> {
    const { fleet, store, limits } = this.#options;
    const next = nextAsyncState(life, eventOf(end));
    const result = end.kind === "answered" ? end.result : null;
    if (next.at !== "waiting") {
      queue.pause.over();
      return await this.#endings.over(queue, { entry, invocation }, { life: next, result, trace, closing });
    }
    // A request that was cancelled because the platform ends still waits in its record.
    if (closing.aborted) return;
    if (end.kind === "interrupted") {
      const forMs = queue.pause.begin(fleet.clock.epochMs(), limits);
      fleet.logger.warning("an asynchronous invocation is repeated later", {
        endpoint: queue.endpoint.name,
        error: String(end.why),
        pauseMs: forMs,
      });
    } else {
      const { key } = entry;
      if (end.kind === "lost") queue.log.write(invocation, trace, againText(end.failure.text, next.lostCount));
      const change = store.kinds.asyncInvocations.put(key, { ...invocation, lostCount: next.lostCount }, "any");
      await this.#endings.persist(closing, invocation, () => store.write([change]));
    }
    queue.waiting.putBack(entry);
  }

  /** Ends a request without running it: it has expired, or its endpoint is deleted. */
  async #fail(queue: EndpointQueue, entry: QueuedEntry, closing: AbortSignal): Promise<void> {
    const found = await this.#read(queue, entry, closing);
    if (found === null) return;
    const nowMs = this.#options.fleet.clock.epochMs();
    const waiting: AsyncState = { at: "waiting", lostCount: found.lostCount };
    const isExpired = nowMs >= found.expiresMs;
    const life = isExpired
      ? nextAsyncState(waiting, { kind: "taken", nowMs, expiresMs: found.expiresMs })
      : nextAsyncState(waiting, { kind: "orphaned" });
    await this.#endings.over(queue, { entry, invocation: found }, { life, closing });
  }

  /**
   * Returns null for a missing or damaged record, whose request ends here, and for a failed read, whose request waits
   * again.
   */
  async #read(queue: EndpointQueue, entry: QueuedEntry, closing: AbortSignal): Promise<AsyncInvocation | null> {
    const { store } = this.#options;
    const found = await store.kinds.asyncInvocations.find(entry.key).catch((error: unknown) => ({ error }));
    closing.throwIfAborted();
    if ("error" in found) this.#unread(queue, entry, found.error);
    else if (found.at === "found") return found.value;
    else queue.waiting.end(entry);
    return null;
  }

  /**
   * Retries a failed read after a pause. After the last attempt the record is left for the next start, and its place is
   * free.
   */
  #unread(queue: EndpointQueue, entry: QueuedEntry, error: unknown): void {
    const { fleet, limits } = this.#options;
    const readCount = (this.#readCounts.get(entry) ?? 0) + 1;
    this.#readCounts.set(entry, readCount);
    const fields = { endpoint: queue.endpoint.name, key: entry.key, readCount, error: String(error) };
    if (readCount >= readsMax) {
      queue.waiting.end(entry);
      const text = "the record of an asynchronous invocation cannot be read; it is left for the next start";
      return fleet.logger.error(text, fields);
    }
    const pauseMs = queue.pause.begin(fleet.clock.epochMs(), limits);
    const text = "the record of an asynchronous invocation cannot be read; it is read again";
    fleet.logger.warning(text, { ...fields, pauseMs });
    queue.waiting.putBack(entry);
  }
}

const againText = (why: string, lostCount: number) =>
  `${why} The request is repeated (${lostCount + 1} of ${lostCountMax}).`;

function entryOf(key: string, { receivedMs, expiresMs, input }: AsyncInvocation): QueuedEntry {
  return { key, receivedMs, expiresMs, inlineBytes: input.at === "record" ? input.byteLength : 0 };
}

function eventOf(end: RunEnd): AsyncEvent {
  switch (end.kind) {
    case "answered":
    case "interrupted":
      return { kind: end.kind };
    case "refused":
    case "lost":
      return { kind: end.kind, failure: end.failure };
    default:
      return unreachable(end);
  }
}
