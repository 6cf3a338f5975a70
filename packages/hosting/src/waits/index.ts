/** Waits for a record to reach a stable state. */
export { openWaitDeadline, waitForState, type WaitLimits, waitForChange } from "./stable-state.ts";
