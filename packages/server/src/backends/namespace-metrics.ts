export type MetricKind = "counter" | "gauge" | "histogram";

/** A family of metrics as a model describes it. */
export interface MetricHead {
  readonly name: string;
  readonly description: string;
  readonly kind: MetricKind;
}

/** Numbers in shared memory that one process of a model writes and the server reads; `packages/server/python/WIRE.md` says what each is. */
export interface MetricCells {
  readonly cells: Float64Array;
  /** Where they begin in the arena. */
  readonly byteOffset: number;
}

/** What one holder counts under one set of labels. */
export interface MetricPart extends MetricCells {
  /** Of no other holder of the series. */
  readonly id: number;
  /** Of a histogram: ascending, without +Inf. Those of whoever made the series first. */
  readonly bounds: readonly number[];
  /** Of a gauge: where the cell lies that all holders of the series share. */
  readonly sharedByteOffset: number;
  /** What all holders together have counted. Throws UNSUPPORTED for a histogram. */
  value(): number;
}

/** A family for as long as somebody in a model holds it. Disposing it ends its parts: nobody may write to their cells any more. */
export interface HeldFamily extends Disposable {
  /** Throws INVALID_ARG with Triton's texts for labels and bounds that cannot be, and UNAVAILABLE where there are too many. */
  part(labels: ReadonlyMap<string, string>, bounds: readonly number[]): MetricPart;
}

/**
 * The door to the metrics that the models of one namespace make of their own. Models of a namespace that name the same family and the
 * same labels count together, as models of one tritonserver do; no namespace reads or changes another's.
 */
export interface NamespaceMetrics {
  /** Throws INVALID_ARG with Triton's texts for a name that cannot be or is taken, and UNAVAILABLE where there are too many. */
  family(head: MetricHead): HeldFamily;
}
