/**
 * Returns the CPU time of the calling thread since the thread started, in milliseconds. The figure does not grow while other programs have
 * the processor.
 */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
