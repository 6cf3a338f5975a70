/** One invocation: what is asked and answered, how it goes to an instance, and the sentences of what can go wrong. */
export { newSession, readOpenedSession, sessionNotFound, type OpenedSession } from "./session-headers.ts";
export { answerParts } from "./answer-parts.ts";
export { beginHop, callLimitHeader, ContainerChain, type InvokedContainer } from "./container-chain.ts";
export { InstanceInvocations } from "./instance-invocations.ts";
export { ContainerGone, NotSent } from "../instance-agent/index.ts";
export { heldBytesMax, invocationLimits } from "./invocation.ts";
export type { InvocationLimits, InvocationReply, InvocationRequest } from "./invocation.ts";
export { beginOutcome, recordOutcome, recordRefusal } from "./invocation-outcome.ts";
export {
  checkTargets,
  containerError,
  endpointNotFound,
  endpointStopped,
  timeoutText,
  tooLong,
  type InvocationPlace,
} from "./invocation-errors.ts";
