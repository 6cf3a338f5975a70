/** The Prometheus text format, version 0.0.4. Numbers have the format in which Triton prints the metrics of models. */

const labelEscapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
const significantDigits = 16;

/** Returns `name="value"` for each label, sorted by name and joined by commas. */
export function printLabels(labels: Iterable<readonly [string, string]>): string {
  return [...labels]
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, value]) => `${name}="${value.replaceAll(/[\\"\n]/g, (character) => labelEscapes[character]!)}"`)
    .join(",");
}

/**
 * Prints the `# HELP` and `# TYPE` lines of a family. Unlike Triton, escapes line breaks in the description, as the
 * format requires.
 */
export function printFamilyHeader(name: string, description: string, type: string): string {
  const help = description.replaceAll(/[\\\n]/g, (character) => labelEscapes[character]!);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** Prints a number like C's `%.16g`, or as `Nan`, `+Inf` or `-Inf`. */
export function printNumber(value: number): string {
  if (Number.isNaN(value)) return "Nan";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? "-0" : String(value);
  const [mantissa = "", exponentText = ""] = value.toExponential(significantDigits - 1).split("e");
  const exponent = Number(exponentText);
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replaceAll(/[-.]/g, "").replace(/0+$/, "");
  if (exponent < -4 || exponent >= significantDigits) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const magnitude = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${magnitude}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const complete = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return digits.length > exponent + 1 ? `${sign}${complete}.${digits.slice(exponent + 1)}` : `${sign}${complete}`;
}

export function printSample(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${printNumber(value)}\n` : `${name}{${labels}} ${printNumber(value)}\n`;
}

/** Prints the lines of one histogram. `counts` has one count per bucket, not cumulative, with +Inf last. */
export function printHistogram(
  name: string,
  labels: string,
  { bounds, counts, sum }: { readonly bounds: readonly number[]; readonly counts: Float64Array; readonly sum: number },
): string {
  const before = labels === "" ? "" : `${labels},`;
  let lines = "";
  let cumulated = 0;
  for (const [index, bound] of [...bounds, Infinity].entries()) {
    cumulated += counts[index]!;
    lines += printSample(`${name}_bucket`, `${before}le="${printNumber(bound)}"`, cumulated);
  }
  return printSample(`${name}_count`, labels, cumulated) + printSample(`${name}_sum`, labels, sum) + lines;
}
