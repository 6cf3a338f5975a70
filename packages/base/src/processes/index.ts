/**
 * Child processes. Each starts with a lifeline, so that the kernel kills its process group when this process ends in
 * any way. Output is split into bounded lines. A process is stopped with SIGTERM, then SIGKILL, and reaped. The caller
 * that spawns a process owns it and must stop it.
 *
 * A detached process continues to run after the process that started it, and the next run adopts it. `readProcessStart`
 * and `endLeftover` identify and end processes that a previous run recorded. With `lockDirectory`, only one process at
 * a time uses a directory.
 */
export { backoffMs } from "./backoff.ts";
export { adoptOrphans, killOrphans, isAdoptable, watchAdoptedChild } from "./adopted-children.ts";
export { defaultOutputLimits, OutputLines } from "./output-lines.ts";
export { lockDirectory, shareDirectory } from "./directory-lock.ts";
export { describeProcessEnd, type ProcessEnd } from "./process-end.ts";
export {
  endLeftover,
  parseProcessStat,
  readProcessStart,
  type ProcessIdentity,
  type ProcessStat,
} from "./process-identity.ts";
export { adoptDetached, findDetached, startDetached, type DetachedProcess } from "./detached-process.ts";
export { childrenOf, readProcessFile, readProcessFileSync } from "./process-files.ts";
export { spawnProcess, type SpawnedProcess } from "./spawn.ts";
export { releaseMemoryWhenIdle } from "./idle-memory.ts";
