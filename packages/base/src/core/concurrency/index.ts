/** Who may do what at once: turns, locks, places, changes to wait for, times that end a wait, and background work with an owner. */
export { openDeadline, type Deadline } from "./deadline.ts";
export { drained } from "./drained.ts";
export { Gate } from "./gate.ts";
export { KeyedLock } from "./keyed-lock.ts";
export { LazyResource } from "./lazy-resource.ts";
export { LoopTurns, type TurnsOf } from "./loop-turns.ts";
export { orAborted } from "./or-aborted.ts";
export { Semaphore } from "./semaphore.ts";
export { TaskGroup } from "./task-group.ts";
export { Turns } from "./turns.ts";
