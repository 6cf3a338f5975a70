/** What the files around a configuration say. */
export interface CompletionContext {
  /** What a configured name must equal: the model's directory. Null for a model that is mapped to another name, which may be configured under any. */
  readonly directoryName: string | null;
  /** The name clients use; the configuration is completed under it. */
  readonly servedName: string;
  /** Names in the highest version directory that the version policy wants; backends are told apart by them. */
  readonly versionEntries: readonly string[];
  /** Usable GPUs: 0 turns KIND_AUTO into KIND_CPU. */
  readonly gpuCount: number;
  /** Backends that can use none of them: KIND_AUTO of their models is KIND_CPU. Absent: all can. */
  readonly cpuBackends?: ReadonlySet<string>;
}
