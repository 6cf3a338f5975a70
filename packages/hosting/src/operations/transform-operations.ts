import { DocumentConflict } from "../records/index.ts";
import type { HostingCatalog } from "./catalog.ts";
import { hostingArn, nameKey, type Owner } from "../definitions/index.ts";
import type { FleetOptions } from "../endpoints/index.ts";
import { invalid, jobExists, jobNotFound } from "../definitions/index.ts";
import type { Reservations } from "../capacity/index.ts";
import type { EndpointWatch } from "./endpoint-watch.ts";
import { openWait, untilStable, type Wait } from "../waits/index.ts";
import { listPage, type HostingStore, type ListingPage, type ListQuery, type Tag } from "../store/index.ts";
import type { Reconciler } from "../reconcilers/index.ts";
import {
  isUnderWay,
  jobFootprint,
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
  /** Ends the waits of callers when the platform stops. */
  readonly watch: Pick<EndpointWatch, "stopping">;
}

/** Operations on transform jobs, and their records. */
export class Transforms implements AsyncDisposable {
  readonly #options: TransformsOptions;

  constructor(options: TransformsOptions) {
    this.#options = options;
  }

  /** Resumes the jobs of a previous run, after the objects that are done. */
  async resume(): Promise<void> {
    const { store, reconciler } = this.#options;
    for await (const { value } of store.kinds.transformJobs.all())
      if (isUnderWay(value.state)) reconciler.resume(value);
  }

  /** Resolves when the job is recorded as in progress; later failures are in its status. */
  async create(request: TransformRequest, owner: Owner, tags: readonly Tag[]): Promise<TransformJobRecord> {
    const { store, reservations, catalog, reconciler, fleet } = this.#options;
    const { transformJobs, transformProgress } = store.kinds;
    const { TransformJobName: name, TransformResources: resources } = request;
    const key = nameKey(name);
    const arn = hostingArn("transform-job", name, owner);
    const found = await transformJobs.find(key);
    if (found.at === "found") throw jobExists(arn);
    transformPlan(request);
    const model = await catalog.model(request.ModelName, owner);
    if (model.executionMode === "Direct" || model.containers.some(({ Mode: mode }) => mode === "MultiModel")) {
      throw invalid(
        `Model "${model.arn}" cannot be used for a transform job: multi-model containers and the Mode Direct answer one request for one target.`,
      );
    }
    const expectedBytes = await catalog.expectedBytes(model);
    await this.#makeRoom();
    using _reserved = reservations.reserveRecord("transformJobs", key);
    using _instances = reservations.reserveTransform(
      key,
      jobFootprint({ model, request, name, expectedBytes }),
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
        transformJobs.put(key, job, found.at === "absent" ? "absent" : found.version),
        // Progress of a damaged record with the same name.
        transformProgress.delete(key, "any"),
        ...catalog.firstTags(arn, tags),
      ]);
    } catch (error) {
      // Another caller has used the name meanwhile.
      if (error instanceof DocumentConflict) throw jobExists(arn);
      throw error;
    }
    reconciler.begin(job);
    return job;
  }

  async find(name: string): Promise<TransformJobRecord> {
    const found = await this.#options.store.kinds.transformJobs.find(nameKey(name));
    if (found.at !== "found") throw jobNotFound(name);
    return found.value;
  }

  /** Resolves when the stop is recorded, before it is complete. */
  async stop(name: string): Promise<void> {
    const moved = await this.#options.reconciler.transition(nameKey(name), ({ state }) => {
      if (state.at === "Stopping") return null;
      if (state.at === "InProgress") return { kind: "stop" };
      throw invalid(
        `The request was rejected because the transform job is in status ${state.at}; only one that is InProgress can be stopped.`,
      );
    });
    if (moved === null) await this.find(name);
  }

  list(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<TransformJobRecord>> {
    return listPage(this.#options.store.kinds.transformJobs, question, nextTick);
  }

  /** Resolves when the job has ended or stops, or when the wait ends, whichever is first. */
  async settled(name: string, wait: Wait): Promise<void> {
    const { store, fleet, watch } = this.#options;
    using over = openWait(wait, watch.stopping, fleet.clock);
    const isSettled = () => {
      const at = store.view.transformState(nameKey(name));
      return at === null || !isUnderWay({ at });
    };
    await untilStable(store, isSettled, over.signal);
  }

  /** Stops instances; records stay, and `resume` of a later run continues the jobs. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.reconciler[Symbol.asyncDispose]();
  }

  /** Deletes the oldest ended job at the maximum number of jobs: SageMaker has no operation that deletes jobs. */
  async #makeRoom(): Promise<void> {
    const { store, reservations } = this.#options;
    const { transformJobs, transformProgress, tags } = store.kinds;
    if (reservations.hasRoom("transformJobs")) return;
    for await (const { key, value: job } of transformJobs.all("created")) {
      if (isUnderWay(job.state)) continue;
      const changes = [transformProgress.delete(key, "any"), tags.delete(job.arn, "any")];
      await store.write([transformJobs.delete(key, "any"), ...changes]);
      return;
    }
  }
}
