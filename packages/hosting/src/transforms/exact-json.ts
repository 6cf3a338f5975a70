/** What the engine has and the language's types do not: the source of a number, and a number that is printed as it was written. */
interface RawJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}

const json = JSON as unknown as RawJson;

/** JSON whose numbers are printed again as they were written: identifiers of twenty digits stay what they are. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  return json.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined ? json.rawJSON(source) : value,
  );
}

export function isRawNumber(value: unknown): boolean {
  return json.isRawJSON(value);
}
