type Environment = Readonly<Record<string, string>>;

/** What the numerical libraries of Python size their pools by, each when it is loaded. */
export const threadVariables = [
  "OMP_NUM_THREADS",
  "OPENBLAS_NUM_THREADS",
  "MKL_NUM_THREADS",
  "NUMEXPR_NUM_THREADS",
  "VECLIB_MAXIMUM_THREADS",
] as const;

/**
 * The environment of models with so many threads for each process's libraries; what is exported already stays. With null nothing is
 * set: libraries take what their variables say, and without any numpy one thread and the others all processors.
 */
export function withThreads(environment: Environment, threads: number | null): Environment {
  if (threads === null) return environment;
  return { ...Object.fromEntries(threadVariables.map((name) => [name, String(threads)])), ...environment };
}
