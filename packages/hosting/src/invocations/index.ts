/** One invocation: its request and response, its path to an instance, and its error messages. */
export { newSession, readOpenedSession, sessionNotFound, type OpenedSession } from "./session-headers.ts";
export { responseChunks } from "./response-chunks.ts";
export { beginHop, callLimitHeader, ContainerChain, type InvokedContainer } from "./container-chain.ts";
export { beginTrace, recordOutcome, recordRefusal } from "./invocation-metrics.ts";
export { outcomeOfError, type InvocationOutcome } from "./invocation-outcome.ts";
export { InstanceInvocations } from "./instance-invocations.ts";
export { ContainerConnectionLost, NotSent } from "../instance-agent/index.ts";
export { bufferedBytesMax, invocationLimits } from "./invocation.ts";
export type { InvocationLimits, InvocationReply, InvocationRequest } from "./invocation.ts";
export {
  checkTargets,
  containerError,
  endpointNotFound,
  endpointStopped,
  timeoutText,
  tooLong,
  type InvocationSource,
} from "./invocation-errors.ts";
