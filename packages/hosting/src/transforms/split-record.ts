/** One record of an object. */
export interface SourceRecord {
  /** The record's bytes in the object, including the line end, or the frame and padding. */
  readonly framed: Buffer;
  readonly content: Buffer;
}

/** Splits bytes that arrive in chunks into records. Throws TransformError for an invalid or too long record. */
export interface RecordSplitter {
  push(chunk: Buffer): readonly SourceRecord[];
  /** Ends the input. */
  end(): readonly SourceRecord[];
}
