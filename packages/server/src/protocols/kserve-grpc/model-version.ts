import { InferenceError } from "@galatea/base";

/** Number of digits of the largest version. */
const digitsMax = String(2n ** 63n).length;

/** Checks the model version of a message: "" for none, otherwise a natural number as Triton parses it. Throws INVALID_ARG. */
export function parseVersion(version: string): string {
  if (version === "") return "";
  const [, sign = "", digits] = /^\s*([+-]?)0*(\d+)/.exec(version) ?? [];
  // Longer texts are rejected without parsing. A message may contain gigabytes of digits, and the parsing time grows faster than the
  // length.
  const value = digits === undefined || digits.length > digitsMax ? null : BigInt(`${sign}${digits}`);
  if (value === null || value >= 2n ** 63n || value < -(2n ** 63n)) {
    throw new InferenceError(
      "INVALID_ARG",
      `failed to get model version from specified version string '${version}' (details: stol), version should be an integral value > 0`,
    );
  }
  if (value < 0n)
    throw new InferenceError(
      "INVALID_ARG",
      `invalid model version specified '${version}' , version should be an integral value > 0`,
    );
  return String(value);
}
