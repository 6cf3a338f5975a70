/**
 * Features of the JavaScript engine that the language's types lack: the source text of a number, and a number that is
 * printed from its source.
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
 * Parses JSON whose numbers are printed unchanged: identifiers with twenty digits keep all of them. Throws SyntaxError.
 */
export function parseJsonExactly(text: string): unknown {
  return json.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined ? json.rawJSON(source) : value,
  );
}

export function isRawNumber(value: unknown): boolean {
  return json.isRawJSON(value);
}
