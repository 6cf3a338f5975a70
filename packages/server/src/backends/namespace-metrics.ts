export type MetricKind = "counter" | "gauge" | "histogram";

/** The declaration of a metric family by a model. */
export interface MetricHead {
  readonly name: string;
  readonly description: string;
  readonly kind: MetricKind;
}

/**
 * The values of a metric in shared memory: one model process writes them, the server reads them. `packages/server/python/WIRE.md` describes
 * the layout.
 */
export interface MetricCells {
  readonly cells: Float64Array;
  /** Offset of the cells in the arena. */
  readonly byteOffset: number;
}

/** The values that one process has contributed to a series (a metric family with one set of labels). */
export interface MetricHolderCells extends MetricCells {
  /** Unique among the processes that share the series. */
  readonly id: number;
  /** Bounds of a histogram's buckets, ascending, without +Inf. The first process that uses the series determines them. */
  readonly bounds: readonly number[];
  /** Offset, in the arena, of the gauge value that all processes share. */
  readonly sharedByteOffset: number;
  /** Returns the value of the series over all processes. Throws UNSUPPORTED for a histogram. */
  value(): number;
}

/** A reference to a metric family. Disposing it releases the family's cells, which must not be written afterwards. */
export interface MetricFamilyLease extends Disposable {
  /** Throws INVALID_ARG with Triton's texts for invalid labels or bounds, and UNAVAILABLE if there are too many series. */
  openSeries(labels: ReadonlyMap<string, string>, bounds: readonly number[]): MetricHolderCells;
}

/**
 * The custom metrics of the models in one namespace. Models that use the same family and labels share one value, as in tritonserver.
 * Namespaces are isolated from each other.
 */
export interface NamespaceMetrics {
  /**
   * Returns a reference to a family, which is created if necessary. Throws INVALID_ARG with Triton's texts for a name that is invalid or in
   * use; UNAVAILABLE when there are too many families.
   */
  family(head: MetricHead): MetricFamilyLease;
}
