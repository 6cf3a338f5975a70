/** The facts about a model's files, and about the machine, from which its configuration is completed. */
export interface CompletionContext {
  /**
   * Name of the model's directory, which the configuration's name must equal. Null for a model that is served under another name; its
   * configuration may have any name.
   */
  readonly directoryName: string | null;
  /** The name that clients use. The completed configuration has this name. */
  readonly servedName: string;
  /** File names in the highest version directory that the version policy selects. They identify the backend. */
  readonly versionEntries: readonly string[];
  /** Number of usable GPUs. With 0, KIND_AUTO becomes KIND_CPU. */
  readonly gpuCount: number;
  /** Backends that do not support GPUs: KIND_AUTO of their models becomes KIND_CPU. Absent: all backends support GPUs. */
  readonly cpuBackends?: ReadonlySet<string>;
}
