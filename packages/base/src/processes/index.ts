/**
 * Processes below this one: started with a lifeline (the kernel kills their whole group the moment this process is gone, however it
 * went), their output cut into bounded lines with the last ones kept, ended politely and then by force, and reaped. Beside them,
 * processes that share a directory of the machine take turns by its lock.
 *
 * The caller that spawns a process owns it and stops it. A detached process outlives the one that started it, and the next run adopts it. `readProcessStart`
 * and `endLeftover` are for records that outlive a restart.
 */
export { backoffMs } from "./backoff.ts";
export { adoptOrphans, endRemains, isAdoptable, watchAdopted } from "./adopted-children.ts";
export { defaultOutputLimits, OutputLines } from "./output-lines.ts";
export { lockDirectory, shareDirectory } from "./directory-lock.ts";
export { describeEnd, type ProcessEnd } from "./process-end.ts";
export { endLeftover, parseProcessStat, readProcessStart, type ProcessIdentity } from "./process-identity.ts";
export { adoptDetached, findDetached, startDetached, type DetachedProcess } from "./detached-process.ts";
export { childrenOf, readProcessFile } from "./process-files.ts";
export { spawnProcess, type SpawnedProcess } from "./spawn.ts";
export { releaseMemoryWhenIdle } from "./idle-memory.ts";
