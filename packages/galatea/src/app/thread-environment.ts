type Environment = Readonly<Record<string, string>>;

/** Variables with which Python's numerical libraries set the sizes of their thread pools when they are loaded. */
export const threadVariables = [
  "OMP_NUM_THREADS",
  "OPENBLAS_NUM_THREADS",
  "MKL_NUM_THREADS",
  "NUMEXPR_NUM_THREADS",
  "VECLIB_MAXIMUM_THREADS",
] as const;

/**
 * Returns the environment of models, with a number of threads for the numerical libraries of each process. Variables
 * that are already set do not change. With null, nothing is set: without these variables, numpy uses one thread and the
 * other libraries use all processors.
 */
export function withThreads(environment: Environment, threads: number | null): Environment {
  if (threads === null) return environment;
  return { ...Object.fromEntries(threadVariables.map((name) => [name, String(threads)])), ...environment };
}
