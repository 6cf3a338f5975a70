import { assert } from "@galatea/base";

/**
 * Java's character classes, for use inside and outside of brackets. The models' patterns use Java's syntax. They are
 * not anchored, but apply to the complete value.
 */
const classes: Readonly<Record<string, string>> = {
  ASCII: "\\x00-\\x7F",
  Print: "\\x20-\\x7E",
  Graph: "\\x21-\\x7E",
  Alnum: "a-zA-Z0-9",
  Alpha: "a-zA-Z",
  Digit: "0-9",
  Upper: "A-Z",
  Lower: "a-z",
  Space: "\\t\\n\\v\\f\\r ",
  Punct: "!-\\/:-@\\[-`{-~",
};

/**
 * Maximum number of characters that a pattern is tested on. Some models limit a value only by a pattern that is slow
 * for long values.
 */
export const patternInputCharsMax = 16_384;

/**
 * Compiles a pattern. Returns null for a pattern that is published in malformed form; then only the other constraints
 * apply.
 */
export function compilePattern(pattern: string): RegExp | null {
  const source = `^(?:${rewriteJava(pattern)})$`;
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(source, flags);
    } catch (error) {
      assert(error instanceof SyntaxError, "RegExp throws only SyntaxError");
    }
  }
  return null;
}

function rewriteJava(pattern: string): string {
  let text = "";
  let inClass = false;
  for (let at = 0; at < pattern.length; at += 1) {
    const char = pattern[at] ?? "";
    if (char === "\\") {
      const next = pattern[at + 1] ?? "";
      const posix = next === "p" ? /^\{(?:Is)?(\w+)\}/.exec(pattern.slice(at + 2)) : null;
      const known = posix === null ? undefined : classes[posix[1] ?? ""];
      if (posix !== null && known !== undefined) {
        text += inClass ? known : `[${known}]`;
        at += 1 + posix[0].length;
      } else if ("AzZ".includes(next) && next !== "") {
        text += next === "A" ? "^" : "$";
        at += 1;
      } else {
        text += char + next;
        at += 1;
      }
      continue;
    }
    if (char === "[" && !inClass) inClass = true;
    else if (char === "]" && inClass) inClass = false;
    text += char;
  }
  return text;
}
