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

/** Maximum length of FailureReason in SageMaker's API. */
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

/** Returns true if a job is running or stopping. */
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
  /** The model, copied when the job was created, because models may be deleted while a job runs. */
  readonly model: ModelRecord;
  /** Expected bytes of memory of each container's models; absent if unknown. */
  readonly expectedBytes?: readonly number[];
  /** The request with SageMaker's member names, which Describe returns. */
  readonly request: TransformRequest;
}

/** Returns the owner name of a job's instances and outputs. It contains a slash, so no endpoint has the same name. */
export const transformOwnerName = (jobName: string): string => `transform-job/${jobName}`;

/** The progress of a job. The next run of the platform continues from it. */
export interface TransformProgress {
  /** The last object before the first unfinished one, in the order of the input; null if there is none. */
  readonly after: { readonly ordinal: number; readonly key: string } | null;
  /** Keys of finished objects after the first unfinished one. */
  readonly doneKeys: readonly string[];
  readonly doneCount: number;
  readonly failedCount: number;
  /** The failure reason of the first failed object; null if none failed. */
  readonly failure: string | null;
}

export const initialTransformProgress: TransformProgress = {
  after: null,
  doneKeys: [],
  doneCount: 0,
  failedCount: 0,
  failure: null,
};
