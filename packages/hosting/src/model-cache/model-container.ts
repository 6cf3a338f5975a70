import type { ModelState } from "./models-view.ts";

/** The calls of SageMaker's multi-model contract that the model cache makes to a container. */
export interface ModelContainer {
  load(model: { readonly id: string; readonly target: string }, signal: AbortSignal): Promise<ModelLoadReply>;
  /**
   * Resolves when the model is not loaded, also if it was never loaded. `target`: null for a loaded model that is not on the
   * instance's disk.
   */
  unload(model: { readonly id: string; readonly target: string | null }, signal: AbortSignal): Promise<void>;
}

/** A model in a container's list of loaded models. */
export interface ListedModel {
  readonly id: string;
  /** Bytes that the load added, as the container measured them; null if the container reports none. */
  readonly memoryBytes: number | null;
}

export type ModelLoadReply =
  /** `memoryBytes`: bytes that the load added, as the container measured them; null if the container reports none. */
  | { readonly outcome: "loaded"; readonly memoryBytes: number | null }
  | { readonly outcome: "out-of-memory"; readonly message: string }
  | { readonly outcome: "refused"; readonly status: number; readonly message: string };

/**
 * The error of a failed load. Every request that waits for the load is rejected with it. `status`: the container's HTTP status, or
 * the closest one.
 */
export class ModelLoadError extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ModelLoadError";
    this.status = status;
  }
}

/** The error of a connection that broke before the container's response: the container has ended or is ending. */
export class ContainerEndedError extends Error {
  constructor(cause: unknown) {
    super(`the container ended: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "ContainerEndedError";
  }
}

/** The error of a load whose object was replaced before the archive was unpacked. The next `acquire` gets the new version. */
export class ModelReplacedError extends Error {
  constructor(target: string) {
    super(`the object of target model ${target} was replaced while it was loaded`);
    this.name = "ModelReplacedError";
  }
}

/** The error for a target model that has no object. */
export class ModelMissingError extends Error {
  readonly target: string;

  constructor(target: string) {
    super(`there is no object for target model ${target}`);
    this.name = "ModelMissingError";
    this.target = target;
  }
}

/** The error of a request that waited too long for a load. The load continues. `reason`: the current phase of the load. */
export class ModelNotReadyError extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`the model is being loaded: ${reason}`);
    this.name = "ModelNotReadyError";
    this.reason = reason;
  }
}

/** Callbacks of a model cache, for metrics and routing. Durations are in microseconds. */
export interface ModelCacheObserver {
  downloaded(target: string, durationUs: number): void;
  loaded(target: string, durationUs: number): void;
  unloaded(target: string, durationUs: number): void;
  changed(model: ModelState): void;
  /** A request for a model has started or ended. */
  used(id: string, pinCount: number, usedNs: number): void;
  /** The object was replaced or deleted. Copies of the model in other containers are outdated, too. */
  outdated(target: string): void;
}
