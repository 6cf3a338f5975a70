/** One token of protobuf's text format with its position; line and column count from 1, columns in characters. */
export interface TextToken {
  readonly kind: "identifier" | "integer" | "float" | "string" | "punctuation" | "end" | "broken";
  /** The token as written; for a "broken" token, the reason. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

const isSpace = (c: number) => c === 32 || (c >= 9 && c <= 13);
const isDigit = (c: number) => c >= 48 && c <= 57;
const isLetter = (c: number) => (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || c === 95;
const numberPattern = /0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[fF]?/y;

/**
 * Splits a text-format file into tokens by the rules of Triton's tokenizer: `#` comments, both kinds of quotes, no space needed after a
 * number, a byte order mark at the start. Never throws: an invalid token becomes one "broken" token, which is followed only by "end".
 */
export function tokenize(source: string): readonly TextToken[] {
  const tokens: TextToken[] = [];
  let at = source.charCodeAt(0) === 0xfeff ? 1 : 0;
  let line = 1;
  let lineStart = at;
  const push = (kind: TextToken["kind"], text: string) => {
    tokens.push({ kind, text, line, column: at - lineStart + 1 });
  };
  while (at < source.length) {
    const code = source.charCodeAt(at);
    if (code === 10) {
      at += 1;
      line += 1;
      lineStart = at;
    } else if (isSpace(code)) {
      at += 1;
    } else if (code === 35) {
      const end = source.indexOf("\n", at);
      at = end === -1 ? source.length : end;
    } else {
      const token = scan(source, at, code);
      push(token.kind, token.text);
      if (token.kind === "broken") break;
      at += token.text.length;
    }
  }
  push("end", "");
  return tokens;
}

function scan(source: string, at: number, code: number): Pick<TextToken, "kind" | "text"> {
  if (isLetter(code)) {
    let end = at + 1;
    while (end < source.length && (isLetter(source.charCodeAt(end)) || isDigit(source.charCodeAt(end)))) end += 1;
    return { kind: "identifier", text: source.slice(at, end) };
  }
  if (isDigit(code) || (code === 46 && isDigit(source.charCodeAt(at + 1)))) {
    numberPattern.lastIndex = at;
    const text = numberPattern.exec(source)?.[0] ?? source.charAt(at);
    return { kind: /^(?:0[xX][0-9a-fA-F]+|\d+)$/.test(text) ? "integer" : "float", text };
  }
  if (code === 34 || code === 39) return scanString(source, at, code);
  if ("{}<>[]:,;-".includes(source.charAt(at))) return { kind: "punctuation", text: source.charAt(at) };
  return {
    kind: "broken",
    text: `unexpected character ${JSON.stringify(String.fromCodePoint(source.codePointAt(at)!))}`,
  };
}

function scanString(source: string, at: number, quote: number): Pick<TextToken, "kind" | "text"> {
  for (let end = at + 1; end < source.length; end += 1) {
    const code = source.charCodeAt(end);
    if (code === quote) return { kind: "string", text: source.slice(at, end + 1) };
    if (code === 10) break;
    if (code === 92) end += 1;
  }
  return { kind: "broken", text: "a string that is not closed on its line" };
}
