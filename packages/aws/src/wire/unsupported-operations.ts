/** Operations of a published model that are not implemented, with advice. */
export interface UnsupportedOperations {
  /** Their subject, as documentation lists it. */
  readonly area: string;
  /** Matches their names. */
  readonly named: RegExp;
  /** The end of the error's text. */
  readonly advice: string;
}

/** Returns the advice for an operation; null if no row matches. */
export function adviceFor(operation: string, rows: readonly UnsupportedOperations[]): string | null {
  return rows.find(({ named }) => named.test(operation))?.advice ?? null;
}
