/** Waits for a record to reach a stable state. */
export { openWait, untilSettled, type Wait, until } from "./settled.ts";
