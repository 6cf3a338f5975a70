/** Waits for a record to reach a stable state. */
export { openWait, untilStable, type Wait, untilChanged } from "./stable-state.ts";
