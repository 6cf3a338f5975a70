/** One invocation: its request and response, its path to an instance, and its error messages. */
export { newSessionId, parseOpenedSession, sessionNotFound, type OpenedSession } from "./session-headers.ts";
export { responseChunks } from "./response-chunks.ts";
export { newChainHop, clientTimeoutHeader, ContainerChain, type InvocationTarget } from "./container-chain.ts";
export { beginTrace, recordOutcome, recordRejection } from "./invocation-metrics.ts";
export { outcomeOfError, type InvocationOutcome } from "./invocation-outcome.ts";
export { InstanceInvocations } from "./instance-invocations.ts";
export { ContainerConnectionLost, RequestNotSent } from "../instance-agent/index.ts";
export { bufferedBytesMax, invocationLimits } from "./invocation.ts";
export type { InvocationLimits, InvocationReply, InvocationRequest } from "./invocation.ts";
export {
  checkTargets,
  containerError,
  InvocationTimeout,
  endpointNotFound,
  endpointStopped,
  timeoutText,
  payloadTooLarge,
  type InvocationSource,
} from "./invocation-errors.ts";
