/** Operations of a published model that a service will not have, or does not have yet, and what to do instead of them. */
export interface RefusedOperations {
  /** What they are about, as documentation lists them. */
  readonly area: string;
  /** Matches their names. */
  readonly named: RegExp;
  /** Ends the error's text. */
  readonly advice: string;
}

/** What is said to an operation beside its name; null where no row is about it. */
export function adviceFor(operation: string, rows: readonly RefusedOperations[]): string | null {
  return rows.find(({ named }) => named.test(operation))?.advice ?? null;
}
