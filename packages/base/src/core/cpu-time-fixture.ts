/** CPU time of the calling thread since it started, in milliseconds. Unlike a clock it stands still while other programs run. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
