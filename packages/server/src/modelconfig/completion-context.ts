/** Facts about the files of a model that complete its configuration. */
export interface CompletionContext {
  /**
   * The name that the configuration must have: the model's directory. Null for a model that is mapped to another name, whose
   * configuration may have any name.
   */
  readonly directoryName: string | null;
  /** The name that clients use; the completed configuration has it. */
  readonly servedName: string;
  /** File names in the highest version directory that the version policy selects; they identify the backend. */
  readonly versionEntries: readonly string[];
  /** Number of usable GPUs. With 0, KIND_AUTO becomes KIND_CPU. */
  readonly gpuCount: number;
  /** Backends without GPU support: KIND_AUTO of their models becomes KIND_CPU. Absent: all support GPUs. */
  readonly cpuBackends?: ReadonlySet<string>;
}
