import { assert, unreachable } from "@galatea/base";
import type { ModelRecord, Owner } from "../definitions/index.ts";
import type { TransformRequest } from "./transform-request.ts";

/** SageMaker's statuses of transform jobs, each with its own fields. */
export type TransformState =
  | { readonly at: "InProgress"; readonly startedMs: number | null }
  | { readonly at: "Stopping"; readonly startedMs: number | null }
  | { readonly at: "Completed"; readonly startedMs: number | null; readonly endedMs: number }
  | { readonly at: "Failed"; readonly startedMs: number | null; readonly endedMs: number; readonly reason: string }
  | { readonly at: "Stopped"; readonly startedMs: number | null; readonly endedMs: number };

export type TransformEvent =
  | { readonly kind: "started"; readonly atMs: number }
  | { readonly kind: "completed"; readonly atMs: number }
  | { readonly kind: "failed"; readonly atMs: number; readonly reason: string }
  | { readonly kind: "stop" }
  | { readonly kind: "stopped"; readonly atMs: number };

/** FailureReason's length in SageMaker's model. */
const reasonLengthMax = 1024;

/** Returns the state after an event. Throws on an event that the state does not allow, which is a bug of the caller. */
export function applyTransformEvent(state: TransformState, event: TransformEvent): TransformState {
  const { startedMs } = state;
  switch (event.kind) {
    case "started":
      assert(state.at === "InProgress", `started while ${state.at}`);
      return { at: "InProgress", startedMs: startedMs ?? event.atMs };
    case "completed":
      assert(state.at === "InProgress", `completed while ${state.at}`);
      return { at: "Completed", startedMs, endedMs: event.atMs };
    case "failed":
      assert(state.at === "InProgress", `failed while ${state.at}`);
      return { at: "Failed", startedMs, endedMs: event.atMs, reason: event.reason.slice(0, reasonLengthMax) };
    case "stop":
      assert(state.at === "InProgress", `stopped while ${state.at}`);
      return { at: "Stopping", startedMs };
    case "stopped":
      assert(state.at === "Stopping", `ended while ${state.at}`);
      return { at: "Stopped", startedMs, endedMs: event.atMs };
    default:
      return unreachable(event);
  }
}

/** Returns whether a job runs, or is about to end. */
export function isTransformInProgress({ at }: Pick<TransformState, "at">): boolean {
  return at === "InProgress" || at === "Stopping";
}

export interface TransformJobRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  readonly state: TransformState;
  /** Copied at creation, because models may be deleted while a job runs. */
  readonly model: ModelRecord;
  /** Expected bytes of memory of each container's models; absent where it is unknown. */
  readonly expectedBytes?: readonly number[];
  /** The request, in SageMaker's own member names, which Describe returns. */
  readonly request: TransformRequest;
}

/** The owner of a job's instances and outputs: no endpoint has such a name. */
export const transformOwnerName = (jobName: string): string => `transform-job/${jobName}`;

/** The progress of a job, which a later run of the platform continues. */
export interface TransformProgress {
  /** Every object up to this one, in the order of the input, is done. */
  readonly after: { readonly ordinal: number; readonly key: string } | null;
  /** Keys of finished objects after an unfinished one. */
  readonly doneKeys: readonly string[];
  readonly doneCount: number;
  readonly failedCount: number;
  /** The reason of the first failed object. */
  readonly failure: string | null;
}

export const initialTransformProgress: TransformProgress = {
  after: null,
  doneKeys: [],
  doneCount: 0,
  failedCount: 0,
  failure: null,
};
