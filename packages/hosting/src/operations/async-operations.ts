import { AwsError, delay, openDeadline, rejectOnAbort, TaskGroup, unreachable, type Clock } from "@galatea/base";
import { AsyncResultWriter, type AsyncResultWriterOptions } from "./async-result-writer.ts";
import {
  newRunTrace,
  EndpointQueue,
  containerLossesMax,
  newAsyncInvocation,
  nextAsyncState,
  queueKey,
  runAsyncInvocation,
  s3Url,
  type AsyncEvent,
  type AsyncInvocation,
  type AsyncState,
  type AsyncRequest,
  type AsyncReceipt,
  type QueuedInvocation,
  type AsyncRunOutcome,
  type AsyncRunTrace,
} from "../async-inference/index.ts";
import { nameKey, type Owner } from "../definitions/index.ts";
import type { FleetOptions, RunningEndpoint } from "../endpoints/index.ts";
import { endpointNotFound } from "../invocations/index.ts";

export interface AsyncInferencesOptions extends AsyncResultWriterOptions {
  readonly fleet: FleetOptions;
  readonly running: (name: string) => RunningEndpoint | undefined;
  readonly allRunning: () => Iterable<RunningEndpoint>;
  readonly newId: () => string;
  /** Clock for the interval between samples of the queue metrics. */
  readonly seriesClock: Clock;
}

/** Maximum number of attempts to read a record. Including the pauses between them, the attempts take about a minute. */
const readsMax = 6;

/** The queues of all asynchronous endpoints. Requests are started from the queues in round-robin order. */
export class AsyncInferences implements AsyncDisposable {
  readonly #options: AsyncInferencesOptions;
  /** Queues by key, in round-robin order: the first one is served next. */
  readonly #queues = new Map<string, EndpointQueue>();
  readonly #resultWriter: AsyncResultWriter;
  readonly #tasks: TaskGroup;
  /** Number of failed reads of each record. */
  readonly #readCounts = new WeakMap<QueuedInvocation, number>();
  #runningCount = 0;
  #acceptedCount = 0;

  constructor(options: AsyncInferencesOptions) {
    this.#options = options;
    this.#resultWriter = new AsyncResultWriter(options);
    this.#tasks = new TaskGroup((error) => {
      options.fleet.logger.error("bug: a task of asynchronous inference failed", { error: String(error) });
    });
  }

  /** Queues the requests that were accepted before the platform restarted. */
  async resume(): Promise<void> {
    const { asyncInvocations: kind } = this.#options.store.kinds;
    for await (const { key, value } of kind.all()) this.#queueOf(value.endpoint).waiting.push(entryOf(key, value));
    this.#tasks.run((closing) => this.#watch(closing));
    this.#tasks.run((closing) => this.#sample(closing));
  }

  /** Accepts a request. Resolves when its record is on disk; rejects with AwsError if the queue is full or the request is invalid. */
  async accept(name: string, { accountId }: Owner, request: AsyncRequest): Promise<AsyncReceipt> {
    const { store, newId, fleet } = this.#options;
    const { endpoints, asyncInvocations, asyncPayloads } = store.kinds;
    const id = newId();
    const nowMs = fleet.clock.epochMs();
    const key = `${String(nowMs).padStart(15, "0")} ${String((this.#acceptedCount += 1)).padStart(12, "0")} ${id}`;
    return await store.attempt(async () => {
      const found = await endpoints.find(nameKey(name));
      if (found.at !== "found") throw endpointNotFound(name, accountId);
      const invocation = newAsyncInvocation(found.value, request, { id, nowMs });
      const queue = this.#queueOf(invocation.endpoint);
      const entry = entryOf(key, invocation);
      using _reserved = this.#reserve(queue, entry);
      const { body } = request;
      await store.write([
        endpoints.versionCheck(nameKey(name), found.version),
        asyncInvocations.putChange(key, invocation, "absent"),
        ...(body === null ? [] : [asyncPayloads.putChange(key, body.toString("base64"), "absent")]),
      ]);
      queue.waiting.push(entry);
      this.#dispatch();
      const { inferenceId, output, failure } = invocation;
      return {
        inferenceId,
        outputUrl: output === null ? null : s3Url(output),
        failureUrl: failure === null ? null : s3Url(failure),
      };
    });
  }

  /** Cancels running requests. Their records are kept, so that the requests run again after a restart. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  #queueOf(endpoint: AsyncInvocation["endpoint"]): EndpointQueue {
    const key = queueKey(endpoint);
    const found = this.#queues.get(key);
    if (found !== undefined) return found;
    const created = new EndpointQueue(endpoint, this.#options.fleet);
    this.#queues.set(key, created);
    return created;
  }

  /** Reserves a queue slot for a request that is being written to disk. Throws ThrottlingException if the queue is full. */
  #reserve(queue: EndpointQueue, { inlineBytes }: QueuedInvocation): Disposable {
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
        `(${allCount} in all queues), which is the maximum. Retry after some of them have been processed.`;
      throw new AwsError("ThrottlingException", text, { statusFallback: 429 });
    }
    return queue.reserve(inlineBytes);
  }

  /** Polls until the platform shuts down: finds started and deleted endpoints and expired requests, and starts waiting requests. */
  async #watch(closing: AbortSignal): Promise<void> {
    const { store, fleet, limits } = this.#options;
    for (;;) {
      const changed = store.view.stateChanged();
      this.#poll();
      using pause = openDeadline({ clock: fleet.clock, afterMs: limits.pollMs, signal: closing });
      await rejectOnAbort(changed, pause.signal).catch(() => closing.throwIfAborted());
    }
  }

  #poll(): void {
    const { fleet, allRunning } = this.#options;
    const nowMs = fleet.clock.epochMs();
    // A queue is opened for endpoints without requests, too, because its metrics include zero values.
    for (const running of allRunning()) if (running.asyncInference !== null) this.#queueOf(running.queued);
    for (const [key, queue] of this.#queues) {
      const isOrphaned = this.#isOrphaned(queue);
      for (const entry of isOrphaned ? queue.waiting.dequeueAll() : queue.waiting.dequeueExpired(nowMs)) {
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

  /** Starts waiting requests in round-robin order of the queues, while the limits allow it. */
  #dispatch(): void {
    const { limits, fleet } = this.#options;
    const nowMs = fleet.clock.epochMs();
    for (let isStarted = true; isStarted;) {
      isStarted = false;
      // Iterates over a copy: a served queue moves to the end of the map and must not be served twice in one round.
      for (const [key, queue] of Array.from(this.#queues)) {
        if (this.#runningCount >= limits.runningMax) return;
        const running = this.#runningOf(queue);
        if (running === undefined || !queue.canStartNext(running, nowMs)) continue;
        const entry = queue.waiting.dequeue();
        if (entry === null) continue;
        // Moves the queue to the end of the round-robin order.
        this.#queues.delete(key);
        this.#queues.set(key, queue);
        isStarted = true;
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

  async #run(
    queue: EndpointQueue,
    entry: QueuedInvocation,
    running: RunningEndpoint,
    closing: AbortSignal,
  ): Promise<void> {
    const { fleet, store, limits } = this.#options;
    const found = await this.#read(queue, entry, closing);
    if (found === null) return;
    const nowMs = fleet.clock.epochMs();
    const before: AsyncState = { at: "waiting", lostCount: found.lostCount };
    const state = nextAsyncState(before, { kind: "taken", nowMs, expiresMs: found.expiresMs });
    if (state.at === "expired")
      return await this.#resultWriter.writeResult(queue, { entry, invocation: found }, { state: state, closing });
    const trace = newRunTrace();
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
    const end = await runAsyncInvocation(found, parts, closing);
    await this.#recordOutcome(queue, entry, found, { state: state, end, trace, closing });
  }

  /** Applies the outcome of a run: completes the request, or puts it back into the queue. */
  async #recordOutcome(
    queue: EndpointQueue,
    entry: QueuedInvocation,
    invocation: AsyncInvocation,
    {
      state,
      end,
      trace,
      closing,
    }: {
      readonly state: AsyncState;
      readonly end: AsyncRunOutcome;
      readonly trace: AsyncRunTrace;
      readonly closing: AbortSignal;
    },
  ): Promise<void> {
    const { fleet, store, limits } = this.#options;
    const next = nextAsyncState(state, eventOf(end));
    const result = end.kind === "answered" ? end.result : null;
    if (next.at !== "waiting") {
      queue.pause.close();
      return await this.#resultWriter.writeResult(
        queue,
        { entry, invocation },
        { state: next, result, trace, closing },
      );
    }
    // The platform is shutting down. The record is unchanged, so that the request runs again after a restart.
    if (closing.aborted) return;
    if (end.kind === "interrupted") {
      const forMs = queue.pause.begin(fleet.clock.epochMs(), limits);
      fleet.logger.warning("asynchronous invocation interrupted; it runs again after a pause", {
        endpoint: queue.endpoint.name,
        error: String(end.why),
        pauseMs: forMs,
      });
    } else {
      const { key } = entry;
      if (end.kind === "lost") queue.log.write(invocation, trace, retryText(end.failure.text, next.lostCount));
      const change = store.kinds.asyncInvocations.putChange(key, { ...invocation, lostCount: next.lostCount }, "any");
      await this.#resultWriter.persist(closing, invocation, () => store.write([change]));
    }
    queue.waiting.requeue(entry);
  }

  /** Completes a request that will not run, because it has expired or its endpoint was deleted. */
  async #fail(queue: EndpointQueue, entry: QueuedInvocation, closing: AbortSignal): Promise<void> {
    const found = await this.#read(queue, entry, closing);
    if (found === null) return;
    const nowMs = this.#options.fleet.clock.epochMs();
    const waiting: AsyncState = { at: "waiting", lostCount: found.lostCount };
    const isExpired = nowMs >= found.expiresMs;
    const state = isExpired
      ? nextAsyncState(waiting, { kind: "taken", nowMs, expiresMs: found.expiresMs })
      : nextAsyncState(waiting, { kind: "orphaned" });
    await this.#resultWriter.writeResult(queue, { entry, invocation: found }, { state: state, closing });
  }

  /**
   * Reads the record of a request. Resolves with null if the record is missing or damaged, which ends the request, or if
   * the read failed, which puts the request back into the queue.
   */
  async #read(queue: EndpointQueue, entry: QueuedInvocation, closing: AbortSignal): Promise<AsyncInvocation | null> {
    const { store } = this.#options;
    const found = await store.kinds.asyncInvocations.find(entry.key).catch((error: unknown) => ({ error }));
    closing.throwIfAborted();
    if ("error" in found) this.#retryRead(queue, entry, found.error);
    else if (found.at === "found") return found.value;
    else queue.waiting.complete(entry);
    return null;
  }

  /**
   * Retries a failed read after a pause. After the last attempt, the request is removed from the queue. Its record stays on disk and
   * is queued again when the platform restarts.
   */
  #retryRead(queue: EndpointQueue, entry: QueuedInvocation, error: unknown): void {
    const { fleet, limits } = this.#options;
    const readCount = (this.#readCounts.get(entry) ?? 0) + 1;
    this.#readCounts.set(entry, readCount);
    const fields = { endpoint: queue.endpoint.name, key: entry.key, readCount, error: String(error) };
    if (readCount >= readsMax) {
      queue.waiting.complete(entry);
      const text =
        "cannot read the record of an asynchronous invocation; it is queued again when the platform restarts";
      return fleet.logger.error(text, fields);
    }
    const pauseMs = queue.pause.begin(fleet.clock.epochMs(), limits);
    const text = "cannot read the record of an asynchronous invocation; retrying after a pause";
    fleet.logger.warning(text, { ...fields, pauseMs });
    queue.waiting.requeue(entry);
  }
}

const retryText = (why: string, lostCount: number) =>
  `${why} The request is repeated (${lostCount + 1} of ${containerLossesMax}).`;

function entryOf(key: string, { receivedMs, expiresMs, input }: AsyncInvocation): QueuedInvocation {
  return { key, receivedMs, expiresMs, inlineBytes: input.at === "record" ? input.byteLength : 0 };
}

function eventOf(end: AsyncRunOutcome): AsyncEvent {
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
