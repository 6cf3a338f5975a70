import { DocumentConflict } from "../records/index.ts";
import type { HostingCatalog } from "./catalog.ts";
import { hostingArn, nameKey, type Owner } from "../definitions/index.ts";
import type { FleetOptions } from "../endpoints/index.ts";
import { validationError, transformJobAlreadyExists, transformJobNotFound } from "../definitions/index.ts";
import type { Reservations } from "../capacity/index.ts";
import type { EndpointWatch } from "./endpoint-watch.ts";
import { openWaitDeadline, waitForState, type WaitLimits } from "../waits/index.ts";
import { listPage, type HostingStore, type ListingPage, type ListQuery, type Tag } from "../store/index.ts";
import type { Reconciler } from "../reconcilers/index.ts";
import {
  isTransformInProgress,
  transformFootprint,
  transformPlan,
  type TransformEvent,
  type TransformJobRecord,
  type TransformRequest,
} from "../transforms/index.ts";

export interface TransformsOptions {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly catalog: HostingCatalog;
  readonly reconciler: Reconciler<TransformJobRecord, TransformEvent>;
  readonly fleet: FleetOptions;
  /** When the platform shuts down, the `stopping` signal ends the waits of callers. */
  readonly watch: Pick<EndpointWatch, "stopping">;
}

/** SageMaker's operations on batch transform jobs. */
export class Transforms implements AsyncDisposable {
  readonly #options: TransformsOptions;

  constructor(options: TransformsOptions) {
    this.#options = options;
  }

  /** Resumes the jobs that were in progress before the platform restarted. Finished objects are not processed again. */
  async resume(): Promise<void> {
    const { store, reconciler } = this.#options;
    for await (const { value } of store.kinds.transformJobs.all())
      if (isTransformInProgress(value.state)) reconciler.resume(value);
  }

  /** Creates a job. Resolves when its record is written with status `InProgress`. Later failures change the status to `Failed`. */
  async create(request: TransformRequest, owner: Owner, tags: readonly Tag[]): Promise<TransformJobRecord> {
    const { store, reservations, catalog, reconciler, fleet } = this.#options;
    const { transformJobs, transformProgress } = store.kinds;
    const { TransformJobName: name, TransformResources: resources } = request;
    const key = nameKey(name);
    const arn = hostingArn("transform-job", name, owner);
    const found = await transformJobs.find(key);
    if (found.at === "found") throw transformJobAlreadyExists(arn);
    transformPlan(request);
    const model = await catalog.model(request.ModelName, owner);
    if (model.executionMode === "Direct" || model.containers.some(({ Mode: mode }) => mode === "MultiModel")) {
      throw validationError(
        `Model "${model.arn}" cannot be used for a transform job: requests to multi-model containers and to models with Mode Direct must name a target.`,
      );
    }
    const expectedBytes = await catalog.expectedBytes(model);
    await this.#deleteOldestIfFull();
    using _reserved = reservations.reserveRecord("transformJobs", key);
    using _instances = reservations.reserveTransform(
      key,
      transformFootprint({ model, request, name, expectedBytes }),
      resources.InstanceType,
    );
    const nowMs = fleet.clock.epochMs();
    const state = { at: "InProgress", startedMs: null } as const;
    const job: TransformJobRecord = {
      name,
      arn,
      createdMs: nowMs,
      modifiedMs: nowMs,
      owner,
      state,
      model,
      expectedBytes,
      request,
    };
    try {
      await store.write([
        transformJobs.putChange(key, job, found.at === "absent" ? "absent" : found.version),
        // Removes progress of a former job with this name, which may exist if the job's record was damaged.
        transformProgress.deleteChange(key, "any"),
        ...catalog.initialTagChanges(arn, tags),
      ]);
    } catch (error) {
      // A concurrent caller has created a job with this name.
      if (error instanceof DocumentConflict) throw transformJobAlreadyExists(arn);
      throw error;
    }
    reconciler.begin(job);
    return job;
  }

  async find(name: string): Promise<TransformJobRecord> {
    const found = await this.#options.store.kinds.transformJobs.find(nameKey(name));
    if (found.at !== "found") throw transformJobNotFound(name);
    return found.value;
  }

  /** Stops a job. Resolves when the status `Stopping` is recorded; the instances drain afterwards. */
  async stop(name: string): Promise<void> {
    const moved = await this.#options.reconciler.transition(nameKey(name), ({ state }) => {
      if (state.at === "Stopping") return null;
      if (state.at === "InProgress") return { kind: "stop" };
      throw validationError(
        `The request was rejected because the transform job is in status ${state.at}; only one that is InProgress can be stopped.`,
      );
    });
    if (moved === null) await this.find(name);
  }

  list(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<TransformJobRecord>> {
    return listPage(this.#options.store.kinds.transformJobs, question, nextTick);
  }

  /** Resolves when the job is completed, failed or stopped, or when the wait ends. */
  async waitUntilEnded(name: string, wait: WaitLimits): Promise<void> {
    const { store, fleet, watch } = this.#options;
    using over = openWaitDeadline(wait, watch.stopping, fleet.clock);
    const isSettled = () => {
      const at = store.view.transformState(nameKey(name));
      return at === null || !isTransformInProgress({ at });
    };
    await waitForState(store, isSettled, over.signal);
  }

  /** Stops the instances of all jobs. The records are kept, so that the jobs resume after a restart. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.reconciler[Symbol.asyncDispose]();
  }

  /** Deletes the oldest ended job if the maximum number of jobs is reached, because SageMaker has no operation to delete jobs. */
  async #deleteOldestIfFull(): Promise<void> {
    const { store, reservations } = this.#options;
    const { transformJobs, transformProgress, tags } = store.kinds;
    if (reservations.isBelowQuota("transformJobs")) return;
    for await (const { key, value: job } of transformJobs.all("created")) {
      if (isTransformInProgress(job.state)) continue;
      const changes = [transformProgress.deleteChange(key, "any"), tags.deleteChange(job.arn, "any")];
      await store.write([transformJobs.deleteChange(key, "any"), ...changes]);
      return;
    }
  }
}
