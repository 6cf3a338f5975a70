import { assert } from "@galatea/base";

/**
 * The models' patterns are Java's and unanchored, yet mean the whole value. These are their Java-isms, in the form they take
 * inside a character class and outside of one.
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

/** Above this many characters no pattern is tried: some models bound a value by its pattern alone, and time by nothing. */
export const patternInputCharsMax = 16_384;

/** Null when the pattern is malformed as published (there are such): then only the other constraints hold. */
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
