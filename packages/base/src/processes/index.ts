/**
 * Child processes: started with a lifeline (the kernel kills their group when this process ends in any way), their output split into
 * bounded lines, stopped by SIGTERM and then SIGKILL, and reaped. The caller that spawns a process owns it and stops it. A detached process
 * outlives the one that started it, and the next run adopts it. `readProcessStart` and `endLeftover` identify and end processes that a
 * previous run recorded. `lockDirectory` makes processes that share a directory exclude each other.
 */
export { backoffMs } from "./backoff.ts";
export { adoptOrphans, killOrphans, isAdoptable, watchAdoptedChild } from "./adopted-children.ts";
export { defaultOutputLimits, OutputLines } from "./output-lines.ts";
export { lockDirectory, shareDirectory } from "./directory-lock.ts";
export { describeProcessEnd, type ProcessEnd } from "./process-end.ts";
export { endLeftover, parseProcessStat, readProcessStart, type ProcessIdentity } from "./process-identity.ts";
export { adoptDetached, findDetached, startDetached, type DetachedProcess } from "./detached-process.ts";
export { childrenOf, readProcessFile } from "./process-files.ts";
export { spawnProcess, type SpawnedProcess } from "./spawn.ts";
export { releaseMemoryWhenIdle } from "./idle-memory.ts";
