import { ContainerRefusal, type ContainerEnvironment } from "./container-kind.ts";

export interface IntegerBounds {
  readonly least: number;
  readonly most: number;
}

/**
 * Returns the value of the first variable in `names` that is set; null if none is set. Throws ContainerRefusal unless the value is an
 * integer from `least` to `most`.
 */
export function integerVariable(
  environment: ContainerEnvironment,
  names: readonly string[],
  { least, most }: IntegerBounds,
): number | null {
  const name = names.find((each) => (environment[each] ?? "") !== "");
  if (name === undefined) return null;
  const text = environment[name] ?? "";
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : -1;
  if (value >= least && value <= most) return value;
  throw new ContainerRefusal(`ERROR: ${name} must be a whole number from ${least} to ${most}, got: ${text}`);
}

/** Returns a log line for each variable of `withoutEffect` that is set; the values of the table are the reasons. */
export function notesOn(environment: ContainerEnvironment, withoutEffect: Readonly<Record<string, string>>): string[] {
  return Object.entries(withoutEffect).flatMap(([name, why]) =>
    environment[name] === undefined ? [] : [`${name} is accepted without effect: ${why}`],
  );
}
