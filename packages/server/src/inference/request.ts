import { noParameters, type ParameterValue } from "./parameters.ts";
import type { Clock } from "@galatea/base";
import type { RequestCaller } from "./calling-execution.ts";
import type { Tensor } from "../tensor/index.ts";
import type { AnswerSink } from "./answers.ts";

export interface SequenceFlags {
  /** Correlation id: uint64 or string; 0n or "" means none. */
  readonly id: bigint | string;
  readonly start: boolean;
  readonly end: boolean;
}

/** The fields of a request besides its tensors: plain data, which can be sent to another thread. */
export interface RequestHead {
  /** An empty string when the client gave none. */
  readonly id: string;
  /** An empty string is the server's own repositories; otherwise the namespace under which a model archive was registered. */
  readonly namespace: string;
  readonly modelName: string;
  /** An empty string selects the highest ready version. */
  readonly modelVersion: string;
  /** Names of the requested outputs; null selects all. */
  readonly requestedOutputs: readonly string[] | null;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  /** 0 selects the model's default priority level. */
  readonly priority: number;
  /** Microseconds that the client lets it wait in queues, which models can read; 0 for none. */
  readonly queueTimeoutUs: number;
  /**
   * Time at which the server began to receive it, before its body was decoded: a request's duration counts from here. On the engine's
   * monotonic clock.
   */
  readonly receivedNs: number;
  /**
   * Time until which it may wait in queues whose policy allows request timeouts; Infinity for no limit. Steps of an ensemble and a
   * model's calls of other models inherit it: their wait does not start again.
   */
  readonly deadlineNs: number;
  /**
   * Time limit of an execution, in milliseconds, after which its worker is ended; null: none. Steps of an ensemble inherit it, and so do
   * a model's calls of other models.
   */
  readonly executionMsMax: number | null;
}

/**
 * One parsed inference request. It owns its input tensors. The code that runs it takes ownership in every outcome and releases them when
 * no scheduler, worker or ensemble step reads them any more. Backends that use a block longer than the request retain it themselves.
 */
export interface InferenceRequest extends RequestHead {
  readonly inputs: readonly Tensor[];
  /** The model that sends it; null for a client's request. The steps of an ensemble have the ensemble's. */
  readonly caller: RequestCaller | null;
  /** Aborts when nothing waits for the response any more. Null only when no caller can leave (warm-up, tests). */
  readonly signal: AbortSignal | null;
  /** The sink for the responses of a decoupled model; other models have one response, which is the outcome. */
  readonly answers?: AnswerSink;
}

/** A request whose responses go to a sink. */
export type StreamedRequest = InferenceRequest & { readonly answers: AnswerSink };

export function hasSink(request: InferenceRequest): request is StreamedRequest {
  return request.answers !== undefined;
}

/** Creates a request from the given fields and defaults. Assigns field by field: a spread of `given` takes 0.3 us. */
export function newInferenceRequest(
  given: Pick<InferenceRequest, "modelName" | "inputs"> & Partial<InferenceRequest>,
): InferenceRequest {
  const request = {
    id: given.id ?? "",
    namespace: given.namespace ?? "",
    modelName: given.modelName,
    modelVersion: given.modelVersion ?? "",
    inputs: given.inputs,
    requestedOutputs: given.requestedOutputs ?? null,
    parameters: given.parameters ?? noParameters,
    sequence: given.sequence ?? null,
    priority: given.priority ?? 0,
    queueTimeoutUs: given.queueTimeoutUs ?? 0,
    receivedNs: given.receivedNs ?? 0,
    deadlineNs: given.deadlineNs ?? Number.POSITIVE_INFINITY,
    executionMsMax: given.executionMsMax ?? null,
    caller: given.caller ?? null,
    signal: given.signal ?? null,
  };
  return given.answers === undefined ? request : { ...request, answers: given.answers };
}

/** Returns the deadline of a request that has been completely received now: its upload time does not count as waiting in a queue. */
export function deadlineFromNow(clock: Clock, queueTimeoutUs: number): number {
  return queueTimeoutUs > 0 ? clock.monotonicNs() + queueTimeoutUs * 1000 : Number.POSITIVE_INFINITY;
}
