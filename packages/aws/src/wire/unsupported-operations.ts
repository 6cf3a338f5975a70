/** A group of operations of a published model that are not implemented, with advice for callers. */
export interface UnsupportedOperations {
  /** The subject of the operations, as the documentation lists it. */
  readonly area: string;
  /** Matches the names of the operations. */
  readonly named: RegExp;
  /** The last part of the error text. */
  readonly advice: string;
}

/** Returns the advice for an operation; null if no row matches. */
export function adviceFor(operation: string, rows: readonly UnsupportedOperations[]): string | null {
  return rows.find(({ named }) => named.test(operation))?.advice ?? null;
}
