import { AwsError, DiskError, ChangeNotifier, rejectOnAbort, type Clock, type EventLoopQueue } from "@galatea/base";
import type { FleetOptions } from "../endpoints/index.ts";
import { InstanceFailure, ModelDataError } from "../instances/index.ts";
import { listInputObjects, type InputObject } from "./input-objects.ts";
import type { JobMemory } from "./job-memory.ts";
import { ObjectProgress } from "./job-progress.ts";
import { openJobMetrics, transformLogGroup, type TransformJobMetric } from "./job-metrics.ts";
import { transformObject, type ResponseSizes } from "./object-transform.ts";
import { transformClientError, TransformError } from "./transform-error.ts";
import { TransformInstance, textOf } from "./transform-instance.ts";
import { chooseRequestShape, transformPlan, type RequestShape, type TransformPlan } from "./transform-request.ts";
import type { TransformJobRecord, TransformProgress } from "./transform-state.ts";

export interface JobRunOptions {
  readonly job: TransformJobRecord;
  readonly progress: TransformProgress;
  readonly fleet: FleetOptions;
  readonly newInstanceId: () => string;
  /** Shared by all jobs. */
  readonly memory: JobMemory;
  /** Shared by all jobs, for long computations. */
  readonly loopQueue: EventLoopQueue;
  /** Called when the containers are in service, before the first object is read. */
  readonly started: () => Promise<void>;
  /** Writes progress to disk. If several calls are concurrent, only the last must be written. */
  readonly progressed: (progress: TransformProgress) => Promise<void>;
}

/**
 * Maximum number of outputs that one worker writes while it processes its next objects. An object counts as finished
 * only when its output is synced.
 */
const finishingMax = 16;

/**
 * Maximum number of finished objects after an unfinished one, because their keys are stored in the progress. Above it,
 * no further object is started.
 */
const namedFailuresMax = 500;

interface Work {
  readonly instance: TransformInstance;
  readonly shape: RequestShape;
  readonly objects: () => Promise<InputObject | null>;
  readonly responseSizes: ResponseSizes;
  /** Fails the whole job with an error. */
  readonly fail: (error: unknown) => void;
}

/** One run of a job: from the start of its instances to the last object. */
export class JobRun {
  readonly #options: JobRunOptions;
  readonly #plan: TransformPlan;
  readonly #order: ObjectProgress;
  readonly #skipped: ReadonlySet<string>;
  readonly #log: (line: string) => void;
  readonly #record: (metric: TransformJobMetric, value: number) => void;
  readonly #ended = new ChangeNotifier();
  #progress: TransformProgress;

  constructor(options: JobRunOptions) {
    const { job, progress, fleet } = options;
    this.#options = options;
    this.#plan = transformPlan(job.request);
    this.#progress = progress;
    this.#order = new ObjectProgress(progress.after);
    this.#skipped = new Set(progress.doneKeys);
    this.#log = jobLog(fleet, job.name);
    this.#record = openJobMetrics(fleet.openSeries, job.name);
  }

  /**
   * Runs the job. Resolves when every object has been processed or the whole job has failed: with null for success, or
   * with the job's FailureReason.
   */
  async run(signal: AbortSignal): Promise<string | null> {
    try {
      await this.#transformAll(signal);
      return this.#conclusion();
    } catch (error) {
      signal.throwIfAborted();
      const reason = reasonOf(failureOf(error, this.#options.job.model.name));
      this.#log(`the job failed: ${reason}`);
      return reason;
    }
  }

  async #transformAll(signal: AbortSignal): Promise<void> {
    const { job, fleet } = this.#options;
    const { store } = fleet;
    await this.#checkLocations(signal);
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const instances = Array.from({ length: job.request.TransformResources.InstanceCount }, () => this.#instance());
    try {
      await this.#start(instances, either, failed);
      const shape = chooseRequestShape(job.request, (await instances[0]?.executionParameters(either)) ?? {});
      await this.#options.started();
      this.#log(`the job runs: ${JSON.stringify(shape)}`);
      const responseSizes = { bytesMax: 0 };
      const objects = sharedOut(listInputObjects(store, this.#plan, this.#progress));
      const workers = instances.flatMap((instance) => {
        instance.allow(shape.concurrency);
        const work = { instance, shape, objects, responseSizes, fail: (error: unknown) => failed.abort(error) };
        return Array.from({ length: shape.concurrency }, () => this.#work(work, either));
      });
      for (const worker of workers) worker.catch((error: unknown) => failed.abort(error));
      await Promise.allSettled(workers);
      either.throwIfAborted();
    } finally {
      await Promise.all(instances.map((instance) => instance[Symbol.asyncDispose]()));
    }
  }

  #conclusion(): string | null {
    const { doneCount, failedCount, failure } = this.#progress;
    this.#log(`the job is over: ${doneCount} objects transformed, ${failedCount} failed`);
    if (failure !== null) {
      const more = failedCount + doneCount > 1 ? ` (${failedCount} of ${doneCount + failedCount} objects failed)` : "";
      return `${failure}${more}`;
    }
    if (doneCount > 0) return null;
    return `ClientError: No S3 objects found under S3 URL "${this.#sourceUri}" given in input data source.`;
  }

  get #sourceUri(): string {
    return this.#options.job.request.TransformInput.DataSource.S3DataSource.S3Uri;
  }

  /** Checks the buckets before containers start, so that a missing bucket is reported quickly. */
  async #checkLocations(signal: AbortSignal): Promise<void> {
    const { store } = this.#options.fleet;
    for (const { bucket } of [this.#plan.source, this.#plan.target]) {
      const query = { prefix: "", delimiter: "", startAfter: "", keysMax: 1 };
      await store.list(bucket, query).catch((error: unknown) => {
        throw transformClientError(`The bucket ${bucket} cannot be listed: ${textOf(error)}`, { cause: error });
      });
      signal.throwIfAborted();
    }
  }

  #instance(): TransformInstance {
    const { job, fleet, newInstanceId } = this.#options;
    return new TransformInstance({ id: newInstanceId(), job, plan: this.#plan, fleet, log: this.#log });
  }

  async #start(instances: readonly TransformInstance[], either: AbortSignal, failed: AbortController): Promise<void> {
    const starts = instances.map((instance) => instance.start(either));
    for (const start of starts) start.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(starts);
    either.throwIfAborted();
  }

  /**
   * Processes objects one after another. While an output is being written, the container already processes the next
   * object.
   */
  async #work(work: Work, signal: AbortSignal): Promise<void> {
    const finishing = new Set<Promise<void>>();
    for (;;) {
      while (this.#progress.doneKeys.length >= namedFailuresMax) await rejectOnAbort(this.#ended.nextChange(), signal);
      const object = await work.objects();
      signal.throwIfAborted();
      if (object === null) break;
      this.#order.started(object);
      if (this.#skipped.has(object.place.key)) {
        await this.#end(object, {}, signal);
        continue;
      }
      const responded = Promise.withResolvers<void>();
      const done = this.#transform(object, { ...work, onResponse: responded.resolve }, signal)
        .catch(work.fail)
        .finally(() => {
          finishing.delete(done);
          responded.resolve();
        });
      finishing.add(done);
      await responded.promise;
      if (finishing.size >= finishingMax) await Promise.race(finishing);
    }
    await Promise.all(finishing);
    signal.throwIfAborted();
  }

  async #transform(object: InputObject, work: Work & { readonly onResponse: () => void }, signal: AbortSignal) {
    const { fleet, memory, loopQueue } = this.#options;
    let bytes;
    try {
      if (object.siblingKey !== null) throw sameOutput(object, object.siblingKey);
      bytes = await transformObject(
        object,
        { store: fleet.store, memory, loopQueue, plan: this.#plan, ...work },
        signal,
      );
    } catch (error) {
      signal.throwIfAborted();
      // InstanceFailure is a failure of the whole job, not of the object.
      if (error instanceof InstanceFailure) throw error;
      return await this.#fail(object, failureOf(error, this.#options.job.model.name), signal);
    }
    this.#record("ObjectsTransformed", 1);
    this.#record("BytesWritten", bytes);
    this.#log(`transformed s3://${object.place.bucket}/${object.place.key} (${bytes} bytes)`);
    await this.#end(object, { doneCount: this.#progress.doneCount + 1 }, signal);
  }

  async #fail(object: InputObject, error: TransformError, signal: AbortSignal): Promise<void> {
    const { failedCount, failure } = this.#progress;
    const text = `${error.fault}: s3://${object.place.bucket}/${object.place.key}: ${error.message}`.slice(
      0,
      failureCharsMax,
    );
    this.#record("ObjectsFailed", 1);
    this.#log(`failed ${text}`);
    await this.#end(object, { failedCount: failedCount + 1, failure: failure ?? text }, signal);
  }

  async #end(object: InputObject, counted: Partial<TransformProgress>, signal: AbortSignal): Promise<void> {
    this.#progress = { ...this.#progress, ...counted, ...this.#order.ended(object) };
    this.#ended.notify();
    signal.throwIfAborted();
    await this.#options.progressed(this.#progress).catch((error: unknown) => {
      throw new TransformError("InternalServerError", `The progress cannot be recorded: ${textOf(error)}`, {
        cause: error,
      });
    });
  }
}

/**
 * Returns an error for two inputs with the same output key. SageMaker does not document this case; without an error,
 * one output would silently replace the other.
 */
function sameOutput({ place, output }: InputObject, siblingKey: string): TransformError {
  const text =
    `its output s3://${output.bucket}/${output.key} is also the output of s3://${place.bucket}/${siblingKey}; ` +
    'give an S3Uri that ends with "/", or a job for each of them';
  return transformClientError(text);
}

/** Distributes objects to workers: each call of the returned function resolves with the next object. */
function sharedOut(objects: AsyncGenerator<InputObject>): () => Promise<InputObject | null> {
  return async () => {
    const next = await objects.next();
    return next.done === true ? null : next.value;
  };
}

/** Returns a function that writes the job's own log lines, in addition to its containers' output. */
function jobLog({ openLog, clock }: FleetOptions & { readonly clock: Clock }, name: string): (line: string) => void {
  const write = openLog(transformLogGroup, `${name}/data-log`);
  return (line) => write(Buffer.from(`${new Date(clock.epochMs()).toISOString()} ${line}\n`));
}

const logLinesMax = 8;
const failureCharsMax = 960;

const reasonOf = ({ fault, message }: TransformError) => `${fault}: ${message}`;

/** Converts an error to a TransformError with a text for users: the cause, and the container's last output lines. */
function failureOf(error: unknown, modelName: string): TransformError {
  if (error instanceof TransformError) return error;
  if (error instanceof ModelDataError) return transformClientError(error.message, { cause: error });
  if (error instanceof InstanceFailure) {
    const lines = error.lastLines.slice(-logLinesMax).join("\n");
    const text =
      `The ${error.containerName} container of model ${modelName} did not pass the ping health check. ` +
      `(${error.message}${lines === "" ? "" : `; last lines:\n${lines}`})`;
    return new TransformError("AlgorithmError", text, { cause: error });
  }
  if (error instanceof DiskError) return new TransformError("InternalServerError", error.message, { cause: error });
  if (error instanceof AwsError) {
    const { OriginalStatusCode: status } = error.members as { readonly OriginalStatusCode?: number };
    // Without a status of the container, the error comes from the object store, for example a full disk.
    if (status === undefined && (error.statusFallback ?? 400) >= 500) {
      return new TransformError("InternalServerError", error.message, { cause: error });
    }
    const isContainers = status !== undefined && (status === 0 || status >= 500);
    return new TransformError(isContainers ? "AlgorithmError" : "ClientError", error.message, { cause: error });
  }
  return new TransformError("AlgorithmError", `The container did not respond: ${textOf(error)}`, { cause: error });
}
