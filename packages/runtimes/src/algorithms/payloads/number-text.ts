const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const infinite = /^([+-]?)inf(?:inity)?$/i;
const notANumber = /^[+-]?nan$/i;

/** Parses a number like Python's `float` and numpy; null for an invalid text. */
export function parseNumber(text: string): number | null {
  const trimmed = text.trim();
  if (decimal.test(trimmed)) return Number(trimmed);
  const infinity = infinite.exec(trimmed);
  if (infinity !== null) return infinity[1] === "-" ? -Infinity : Infinity;
  return notANumber.test(trimmed) ? NaN : null;
}

/** Returns the digits and the exponent of the shortest decimal of this number: 0.00123 is `123` and -3, as 1.23e-3. */
function digitsOf(magnitude: number): { readonly digits: string; readonly exponent: number } {
  const [mantissa = "0", exponent = "0"] = magnitude.toExponential().split("e");
  return { digits: mantissa.replace(".", ""), exponent: Number(exponent) };
}

function fixed(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  const complete = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${complete}.${digits.slice(exponent + 1) || "0"}`;
}

/** Prints a float like Python's `repr`: 1.0, 0.1, 1e-05, 1e+16, nan. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const magnitude = Math.abs(value);
  if (magnitude === Infinity) return `${sign}inf`;
  const { digits, exponent } = digitsOf(magnitude);
  if (magnitude === 0 || (exponent >= -4 && exponent < 16)) return sign + fixed(digits, exponent);
  const tail = digits.length > 1 ? `.${digits.slice(1)}` : "";
  const power = String(Math.abs(exponent)).padStart(2, "0");
  return `${sign}${digits[0]}${tail}e${exponent < 0 ? "-" : "+"}${power}`;
}

/** Prints a float like Python's `json` module, which writes NaN and Infinity although JSON does not allow them. */
export function pythonJsonFloat(value: number): string {
  if (Number.isFinite(value)) return pythonFloat(value);
  return Number.isNaN(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
}

/** Prints a double like Java's `Double.toString`: 1.0, 0.001, 1.0E-4, 1.0E7, NaN. */
export function javaDouble(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const magnitude = Math.abs(value);
  if (magnitude === Infinity) return `${sign}Infinity`;
  const { digits, exponent } = digitsOf(magnitude);
  if (magnitude === 0 || (exponent >= -3 && exponent < 7)) return sign + fixed(digits, exponent);
  return `${sign}${digits[0]}.${digits.slice(1) || "0"}E${exponent}`;
}
