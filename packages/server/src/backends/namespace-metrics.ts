export type MetricKind = "counter" | "gauge" | "histogram";

/** A metric family as a model declares it. */
export interface MetricHead {
  readonly name: string;
  readonly description: string;
  readonly kind: MetricKind;
}

/** Numbers in shared memory that one process of a model writes and the server reads; `packages/server/python/WIRE.md` has the layout. */
export interface MetricCells {
  readonly cells: Float64Array;
  /** Offset in the arena. */
  readonly byteOffset: number;
}

/** The cells of one holder under one set of labels. */
export interface MetricHolderCells extends MetricCells {
  /** Unique among the holders of the series. */
  readonly id: number;
  /** Bounds of a histogram, ascending, without +Inf, as the first holder of the series gave them. */
  readonly bounds: readonly number[];
  /** Offset of the gauge cell that all holders of the series share. */
  readonly sharedByteOffset: number;
  /** Returns the total of all holders. Throws UNSUPPORTED for a histogram. */
  value(): number;
}

/** A reference to a family. Disposing it releases its cells: they must not be written afterwards. */
export interface MetricFamilyLease extends Disposable {
  /** Throws INVALID_ARG with Triton's texts for invalid labels and bounds, and UNAVAILABLE when there are too many. */
  openSeries(labels: ReadonlyMap<string, string>, bounds: readonly number[]): MetricHolderCells;
}

/**
 * The custom metrics of one namespace's models. Models of a namespace that name the same family and labels share the counts, as models of
 * one tritonserver do; no namespace reads or changes another's.
 */
export interface NamespaceMetrics {
  /** Throws INVALID_ARG with Triton's texts for a name that is invalid or in use, and UNAVAILABLE when there are too many. */
  family(head: MetricHead): MetricFamilyLease;
}
