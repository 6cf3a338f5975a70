import { InferenceError } from "@galatea/base";

const spaces = " \\t\\n\\v\\f\\r";
/** Escapes with the same meaning in Java and in JavaScript. */
const sharedEscapes = /^[dDwWbBtnrfux0-9cpPk^$\\.*+?()[\]{}|/-]$/;

/**
 * Converts a Java regular expression to one of JavaScript. Throws InferenceError, UNSUPPORTED for features that JavaScript does not have:
 * possessive quantifiers, inline flags, unions and intersections of classes, and Java's own escapes.
 */
export function javaPattern(source: string): RegExp {
  try {
    return new RegExp(translated(source), "gu");
  } catch (error) {
    if (error instanceof InferenceError) throw error;
    throw new InferenceError("UNSUPPORTED", `the pattern '${source.slice(0, 200)}' cannot be run`, { cause: error });
  }
}

function translated(source: string): string {
  let out = "";
  let inClass = false;
  for (let at = 0; at < source.length; at += 1) {
    const one = source[at] as string;
    const next = source[at + 1] ?? "";
    if (one === "\\") {
      out += escaped(next, inClass, source);
      at += 1;
      continue;
    }
    const isFlag = one === "(" && next === "?" && !/^\(\?(?::|=|!|<)/.test(source.slice(at, at + 3));
    const isPossessive = !inClass && /[*+?}]/.test(one) && next === "+";
    const isSetOperation = inClass && (one === "[" || (one === "&" && next === "&"));
    if ((isFlag && !inClass) || isPossessive || isSetOperation) throw notShared(source.slice(at, at + 3), source);
    if (one === "[") inClass = true;
    else if (one === "]") inClass = false;
    out += one;
  }
  return out;
}

/** Returns an escape in JavaScript's syntax. In Java `\s` matches six characters; in JavaScript it also matches Unicode spaces. */
function escaped(letter: string, inClass: boolean, source: string): string {
  if (letter === "s") return inClass ? spaces : `[${spaces}]`;
  if (letter === "S" && !inClass) return `[^${spaces}]`;
  if (sharedEscapes.test(letter)) return letter === "-" && !inClass ? "-" : `\\${letter}`;
  // Java allows escaping any character that is not a letter.
  if (letter !== "" && !/[A-Za-z]/.test(letter)) return letter;
  throw notShared(`\\${letter}`, source);
}

function notShared(what: string, source: string): InferenceError {
  return new InferenceError(
    "UNSUPPORTED",
    `'${what}' in the pattern '${source.slice(0, 200)}' is supported by Java only`,
  );
}

/** Splits like Java's `Pattern.split`: omits empty strings at the end, and one at the start if the first match has no width. */
export function javaSplit(text: string, pattern: RegExp): string[] {
  const segments: string[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const end = match.index + match[0].length;
    if (end === 0) continue;
    segments.push(text.slice(from, match.index));
    from = end;
  }
  if (segments.length === 0 && from === 0) return [text];
  segments.push(text.slice(from));
  while (segments.at(-1) === "") segments.pop();
  return segments;
}
