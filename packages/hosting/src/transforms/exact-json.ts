/**
 * Features of JSON that TypeScript's types lack: the source text of a number, and numbers that are printed from their
 * source text.
 */
interface RawJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}

const json = JSON as unknown as RawJson;

/**
 * Parses JSON and preserves the source text of numbers, so that identifiers with twenty digits keep all digits. Throws
 * SyntaxError.
 */
export function parseJsonExactly(text: string): unknown {
  return json.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined ? json.rawJSON(source) : value,
  );
}

export function isRawNumber(value: unknown): boolean {
  return json.isRawJSON(value);
}
