/** Types of inference, without I/O: requests, responses, the record of a request's times, the contract of instances. */
export { DeferredResponses, type ResponseSink } from "./response-sink.ts";
export type { CallingExecution, RequestCaller } from "./calling-execution.ts";
export {
  ExecutionNotStarted,
  type Execution,
  type Instance,
  type InstanceState,
  type InstanceSupervision,
  type Released,
} from "./instance.ts";
export { noParameters, type ParameterValue } from "./parameters.ts";
export { newRecord, type RequestRecord } from "./record.ts";
export {
  deadlineFromNow,
  hasResponseSink,
  newInferenceRequest,
  type InferenceRequest,
  type RequestHead,
  type SequenceFlags,
  type StreamedRequest,
} from "./request.ts";
export { releaseResponse, type InferenceResponse, type Outcome, type ResponseHead } from "./response.ts";
