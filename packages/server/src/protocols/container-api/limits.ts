/** Limits of the container API in addition to those of its HTTP listener. */
export interface ContainerLimits {
  /** Maximum number of registered archives. */
  readonly modelsMax: number;
  /** Maximum size of the body of a load call, which contains a name and a path. */
  readonly loadBodyBytesMax: number;
}

export const defaultContainerLimits: ContainerLimits = { modelsMax: 100_000, loadBodyBytesMax: 64 * 1024 };
