import type { ModelState } from "./models-view.ts";

/** The part of SageMaker's multi-model contract that the model cache calls on a container. */
export interface ModelContainer {
  load(model: { readonly id: string; readonly target: string }, signal: AbortSignal): Promise<ModelLoadReply>;
  /** Resolves when the model is not loaded, even if it never was. `target`: null for a model that only the container knows. */
  unload(model: { readonly id: string; readonly target: string | null }, signal: AbortSignal): Promise<void>;
}

/** A model in a container's list of loaded models. */
export interface ListedModel {
  readonly id: string;
  /** Memory that its load added, as the container measured it; null where it reports none. */
  readonly memoryBytes: number | null;
}

export type ModelLoadReply =
  /** `memoryBytes`: memory that the load added, as the container measured it; null where it reports none. */
  | { readonly outcome: "loaded"; readonly memoryBytes: number | null }
  | { readonly outcome: "out-of-memory"; readonly message: string }
  | { readonly outcome: "refused"; readonly status: number; readonly message: string };

/** A load failed; each request that waits for it is rejected with this. `status`: the container's HTTP status, or the closest one. */
export class ModelLoadError extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ModelLoadError";
    this.status = status;
  }
}

/** The connection to the container broke before its response: the container has ended or is ending. */
export class ContainerEndedError extends Error {
  constructor(cause: unknown) {
    super(`the container ended: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "ContainerLostError";
  }
}

/** The object was replaced before its archive was unpacked: the next acquire gets the new version. */
export class ModelReplacedError extends Error {
  constructor(target: string) {
    super(`the object of target model ${target} was replaced while it was loaded`);
    this.name = "ModelReplacedError";
  }
}

/** There is no object for the target model. */
export class ModelMissingError extends Error {
  readonly target: string;

  constructor(target: string) {
    super(`there is no object for target model ${target}`);
    this.name = "ModelMissingError";
    this.target = target;
  }
}

/** The request waited too long for a load, which continues. `reason`: the current phase of the load. */
export class ModelNotReadyError extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`the model is being loaded: ${reason}`);
    this.name = "ModelNotReadyError";
    this.reason = reason;
  }
}

/** Durations in microseconds. */
export interface ModelCacheObserver {
  downloaded(target: string, durationUs: number): void;
  loaded(target: string, durationUs: number): void;
  unloaded(target: string, durationUs: number): void;
  changed(model: ModelState): void;
  /** A request for a model has started or ended. */
  used(id: string, pinCount: number, usedNs: number): void;
  /** The object was replaced or deleted: other containers that have the model have an old version. */
  outdated(target: string): void;
}
