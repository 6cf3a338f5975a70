/** Bounds of the container contract beyond those of its HTTP listener. */
export interface ContainerLimits {
  /** Archives registered at a time. */
  readonly modelsMax: number;
  /** The body of a load call: a name and a path. */
  readonly loadBodyBytesMax: number;
}

export const defaultContainerLimits: ContainerLimits = { modelsMax: 100_000, loadBodyBytesMax: 64 * 1024 };
