/**
 * Returns the CPU time that the calling thread has used since it started, in milliseconds. Unlike elapsed time, it does
 * not depend on the load by other programs.
 */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
