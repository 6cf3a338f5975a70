import { Readable } from "node:stream";
import { AwsError, retryWrite, unreachable } from "@galatea/base";
import {
  newRunTrace,
  expiredFailure,
  resultMessage,
  s3Url,
  type AsyncInvocation,
  type AsyncState,
  type AsyncLimits,
  type AsyncResult,
  type EndpointQueue,
  type QueuedInvocation,
  type ResultOutbox,
  type AsyncRunTrace,
  isTemporaryStoreError,
} from "../async-inference/index.ts";
import type { FleetOptions } from "../endpoints/index.ts";
import type { HostingStore } from "../store/index.ts";

export interface AsyncResultWriterOptions {
  readonly store: HostingStore;
  readonly fleet: Pick<FleetOptions, "store" | "clock" | "logger">;
  readonly limits: AsyncLimits;
  /** Outbox for SNS notifications; null if the platform sends none. */
  readonly outbox: ResultOutbox | null;
}

/** Completes asynchronous requests: stores failures in S3, sends SNS notifications, counts the results, and deletes the records. */
export class AsyncResultWriter {
  readonly #options: AsyncResultWriterOptions;

  constructor(options: AsyncResultWriterOptions) {
    this.#options = options;
  }

  /** Publishes the result of a request and deletes its record, in one transaction. */
  async writeResult(
    queue: EndpointQueue,
    { entry, invocation }: { readonly entry: QueuedInvocation; readonly invocation: AsyncInvocation },
    on: {
      readonly state: AsyncState;
      readonly result?: Extract<AsyncResult, { readonly is: "completed" }> | null;
      /** Trace of the request's last run; absent for a request that has not run. */
      readonly trace?: AsyncRunTrace;
      readonly closing: AbortSignal;
    },
  ): Promise<void> {
    const { store, fleet } = this.#options;
    const { state, closing } = on;
    const result = on.result ?? failedResultOf(state);
    const variant = result.is === "completed" ? result.variantName : invocation.variantName;
    if (result.is === "failed") {
      const { text } = result.failure;
      await this.persist(closing, invocation, () => this.#storeFailure(invocation, text, { queue, variant, closing }));
    }
    await this.persist(closing, invocation, async () => {
      const nowMs = fleet.clock.epochMs();
      const topic = result.is === "completed" ? invocation.topics.success : invocation.topics.error;
      const posted =
        topic === null
          ? null
          : await this.#options.outbox?.prepareMessage(topic, resultMessage(invocation, result, nowMs));
      const { asyncInvocations, asyncPayloads } = store.kinds;
      await store.write([
        asyncInvocations.deleteChange(entry.key, "any"),
        ...(invocation.input.at === "record" ? [asyncPayloads.deleteChange(entry.key, "any")] : []),
        ...(posted?.changes ?? []),
      ]);
      posted?.written();
      if (topic !== null && (posted ?? null) === null) queue.metrics.record(variant, "NotificationFailures", 1);
    });
    queue.waiting.complete(entry);
    queue.metrics.record(variant, "InvocationsProcessed", 1);
    queue.metrics.record(variant, "InvocationFailures", result.is === "failed" ? 1 : 0);
    queue.metrics.record(variant, "ExpiredRequests", state.at === "expired" ? 1 : 0);
    const totalMs = fleet.clock.epochMs() - invocation.receivedMs;
    queue.metrics.record(variant, "TotalProcessingTime", totalMs);
    const trace = on.trace ?? newRunTrace();
    if (result.is === "completed") queue.log.succeeded(invocation, trace, totalMs);
    else queue.log.write(invocation, trace, result.failure.logged ?? result.failure.text);
  }

  async #storeFailure(
    { failure }: AsyncInvocation,
    text: string,
    on: { readonly queue: EndpointQueue; readonly variant: string; readonly closing: AbortSignal },
  ): Promise<void> {
    if (failure === null) return;
    const { fleet } = this.#options;
    const { queue, variant, closing: signal } = on;
    try {
      await fleet.store.put(failure.bucket, failure.key, Readable.from(Buffer.from(text)), {
        contentType: "text/plain; charset=utf-8",
        signal,
      });
    } catch (error) {
      // Other errors, such as a missing bucket, are permanent. They are counted and logged, and the request is completed without a
      // stored failure.
      if (!(error instanceof AwsError) || isTemporaryStoreError(error)) throw error;
      queue.metrics.record(variant, "ResponseUploadFailures", 1);
      fleet.logger.warning("a failure could not be stored", { location: s3Url(failure), error: error.message });
    }
  }

  /**
   * Retries a write until it succeeds, so that a full disk delays requests but does not lose them. Rejects when the platform shuts
   * down.
   */
  async persist(
    signal: AbortSignal,
    { inferenceId: name }: AsyncInvocation,
    write: () => Promise<unknown>,
  ): Promise<void> {
    const { fleet, limits: pauses } = this.#options;
    const { clock, logger } = fleet;
    const what = "the result of an invocation";
    await retryWrite(write, {
      clock,
      logger,
      recordDescription: what,
      ownerName: name,
      retries: "every error",
      pauses,
      signal,
    });
  }
}

function failedResultOf(state: AsyncState): Extract<AsyncResult, { readonly is: "failed" }> {
  switch (state.at) {
    case "failed":
      return { is: "failed", failure: state.failure };
    case "expired":
      return { is: "failed", failure: expiredFailure };
    case "waiting":
    case "running":
    case "completed":
      throw new Error(`bug: no failure while ${state.at}`);
    default:
      return unreachable(state);
  }
}
