type Environment = Readonly<Record<string, string>>;

/** Variables from which Python's numerical libraries size their pools when they are loaded. */
export const threadVariables = [
  "OMP_NUM_THREADS",
  "OPENBLAS_NUM_THREADS",
  "MKL_NUM_THREADS",
  "NUMEXPR_NUM_THREADS",
  "VECLIB_MAXIMUM_THREADS",
] as const;

/**
 * Returns the environment of models with a number of threads for each process's libraries; exported variables stay.
 * With null nothing is set: libraries use their variables, and without any numpy uses one thread and the others all
 * processors.
 */
export function withThreads(environment: Environment, threads: number | null): Environment {
  if (threads === null) return environment;
  return { ...Object.fromEntries(threadVariables.map((name) => [name, String(threads)])), ...environment };
}
