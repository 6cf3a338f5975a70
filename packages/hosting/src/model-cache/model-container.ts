import type { ModelState } from "./models-view.ts";

/** The part of SageMaker's multi-model contract that the model cache calls on a container. */
export interface ModelContainer {
  load(model: { readonly id: string; readonly target: string }, signal: AbortSignal): Promise<LoadReply>;
  /** Resolves when the model is gone, also when it was never there. `target`: null where only the container knows the model. */
  unload(model: { readonly id: string; readonly target: string | null }, signal: AbortSignal): Promise<void>;
}

/** A model that a container says it has loaded. */
export interface ContainedModel {
  readonly id: string;
  /** What its load added, as the container measured it; null where it does not say. */
  readonly memoryBytes: number | null;
}

export type LoadReply =
  /** `memoryBytes`: what the load added, as the container measured it; null when it does not say. */
  | { readonly outcome: "loaded"; readonly memoryBytes: number | null }
  | { readonly outcome: "out-of-memory"; readonly message: string }
  | { readonly outcome: "refused"; readonly status: number; readonly message: string };

/** A load that failed, to be told to those who wait for it. `status` is what the container answered, or the nearest. */
export class ModelLoadError extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ModelLoadError";
    this.status = status;
  }
}

/** The connection to the container broke before it answered: it ended, or is about to. */
export class ContainerLostError extends Error {
  constructor(cause: unknown) {
    super(`the container ended: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "ContainerLostError";
  }
}

/** The object was replaced while its archive waited for its turn or was unpacked: what is asked for now is another version. */
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

/** The wait ended before the load did; the load goes on. `reason` says what it was doing. */
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
  /** A request for a model has come or gone. */
  used(id: string, pinCount: number, usedNs: number): void;
  /** The object is another one than before, or gone: who else has the model has an old one. */
  outdated(target: string): void;
}
