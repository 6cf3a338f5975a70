import { AwsError } from "@galatea/base";

const shownCharsMax = 128;

/**
 * A member of an input that is not implemented. It would change the behaviour or promise protection, so it is rejected
 * and never ignored.
 */
export interface UnsupportedMember {
  /** Names of the nested members, outermost first, joined by dots. */
  readonly path: string;
  /** Returns whether a value requests only the existing behaviour and can be accepted. */
  readonly harmless?: (value: unknown) => boolean;
}

/**
 * Throws an error that names the first of these members that the input has and that is not harmless. `of` is the name
 * of the input in the error text.
 */
export function rejectUnsupportedMembers(
  input: object,
  members: readonly UnsupportedMember[],
  { code, of = "" }: { readonly code: string; readonly of?: string },
): void {
  for (const { path, harmless } of members) {
    let value: unknown = input;
    for (const name of path.split(".")) {
      value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
    }
    if (value === undefined || value === null || harmless?.(value) === true) continue;
    const message = value === true ? "true" : typeof value === "string" && value.length <= shownCharsMax ? value : null;
    const shown = message === null ? path : `${path} ${message}`;
    throw new AwsError(code, `${shown}${of} is not supported by this platform yet.`);
  }
}
