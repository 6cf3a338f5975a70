/**
 * Splits JSON into tokens, so that the order of keys and the text of numbers can be compared without white space and
 * the spelling of strings. Accepts NaN and Infinity, which Triton prints.
 */
export function jsonTokens(text: string): string[] {
  const tokens: string[] = [];
  const pattern = /\s+|"(?:[^"\\]|\\.)*"|[{}[\]:,]|-?(?:Infinity|Inf)|NaN|[-+.\w]+/gsy;
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(text);
    if (match === null) throw new SyntaxError(`not JSON at ${start}: ${text.slice(start, start + 40)}`);
    const token = match[0];
    if (token.trim() === "") continue;
    tokens.push(token.startsWith('"') ? normalString(token) : token);
  }
  return tokens;
}

function normalString(token: string): string {
  try {
    return JSON.stringify(JSON.parse(token));
  } catch {
    return token;
  }
}

/** Returns `unordered` JSON with `outputs` sorted by their text; of members with the same name the last counts. */
export function unorderedOutputs(text: string): string {
  const value = JSON.parse(unordered(text)) as PrintedResponse | readonly { infer_response: PrintedResponse }[];
  if (!Array.isArray(value)) return JSON.stringify(sortedOutputs(value as PrintedResponse));
  return JSON.stringify(
    value.map((message) => ({ ...message, infer_response: sortedOutputs(message.infer_response) })),
  );
}

interface PrintedResponse {
  outputs?: unknown[];
  /** Present in a gRPC response, in the order of its outputs. */
  raw_output_contents?: unknown[];
}

function sortedOutputs({ outputs, raw_output_contents: raw, ...rest }: PrintedResponse): unknown {
  return { ...rest, outputs: outputs?.map((output, at) => JSON.stringify([output, raw?.[at]])).sort() };
}

/** Returns JSON with sorted keys at every depth; numbers keep their text. */
export function unordered(text: string): string {
  const value: unknown = JSON.parse(text, function (_key, parsed: unknown, context?: { source?: string }) {
    return typeof parsed === "number" ? { "#": context?.source ?? String(parsed) } : parsed;
  } as (key: string, value: unknown) => unknown);
  return JSON.stringify(sorted(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, sorted(member)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
