/** One record of an object. */
export interface SplitRecord {
  /** As it stands in the object, with its line end, or its frame and padding. */
  readonly framed: Buffer;
  readonly content: Buffer;
}

/** Finds the records in bytes that come piece by piece. Throws TransformError for what is no record, or one that is too long. */
export interface RecordSplitter {
  push(piece: Buffer): readonly SplitRecord[];
  /** There is nothing more. */
  end(): readonly SplitRecord[];
}
