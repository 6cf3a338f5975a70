/** One invocation: what is asked and answered, and the sentences of what can go wrong. */
export {
  containerError,
  endpointNotFound,
  heldBytesMax,
  invocationLimits,
  modelErrorOf,
  timeoutText,
  tooLong,
  type InvocationLimits,
  type InvocationPlace,
  type InvocationReply,
  type InvocationRequest,
} from "./invocation.ts";
