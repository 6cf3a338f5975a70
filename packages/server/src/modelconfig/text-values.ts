import type { DescEnum } from "@bufbuild/protobuf";
import { nearestName } from "./spelling.ts";
import type { ValueShape } from "./text-shape.ts";
import type { TextToken } from "./text-tokens.ts";

/** The text of a scalar for the protobuf library, or a description of the value that was expected. */
export type ScalarText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

const booleans: Readonly<Record<string, string>> = {
  true: "true",
  True: "true",
  t: "true",
  false: "false",
  False: "false",
  f: "false",
};
const reals = new Set(["inf", "infinity", "nan"]);
const escaped =
  /^(?:[^\\]|\\(?:[abfnrtv?'"\\]|[0-7]{1,3}|[xX][0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}))*$/s;

/** Converts the tokens of one value: a token after an optional minus sign, or adjacent strings. */
export function scalarText(value: Exclude<ValueShape, { kind: "message" }>, tokens: readonly TextToken[]): ScalarText {
  const negative = tokens[0]!.kind === "punctuation";
  const token = tokens[negative ? 1 : 0]!;
  const refuse = (expected: string): ScalarText => ({
    ok: false,
    reason: `expected ${expected}, found ${negative ? "- " : ""}${describeFound(token)}`,
  });
  switch (value.kind) {
    case "bool":
      return booleanText(token, negative) ?? refuse("true or false");
    case "string": {
      if (negative || token.kind !== "string") return refuse("a string in quotes");
      const broken = tokens.find((chunk) => !escaped.test(chunk.text));
      return broken
        ? { ok: false, reason: `invalid escape in string ${broken.text}` }
        : done(tokens.map((one) => one.text).join(" "));
    }
    case "real":
      return realText(token, negative) ?? refuse("a number");
    case "integer": {
      const number = integerOf(token, negative);
      if (number === null) return refuse("an integer");
      if (number < value.min || number > value.max) return refuse(`an integer from ${value.min} to ${value.max}`);
      return done(String(number));
    }
    default:
      return enumText(value.desc, token, negative);
  }
}

/** Returns a description of a token for an error message. */
export function describeFound(token: TextToken): string {
  switch (token.kind) {
    case "end":
      return "the end of the file";
    case "broken":
      return token.text;
    case "string":
      return `string ${clip(token.text)}`;
    case "integer":
      return `integer ${clip(token.text)}`;
    case "float":
      return `number ${clip(token.text)}`;
    default:
      return `'${clip(token.text)}'`;
  }
}

const clip = (text: string) => (text.length > 60 ? `${text.slice(0, 57)}...` : text);
const done = (text: string): ScalarText => ({ ok: true, text });

function booleanText(token: TextToken, negative: boolean): ScalarText | null {
  if (negative) return null;
  if (token.kind === "identifier" && Object.hasOwn(booleans, token.text)) return done(booleans[token.text]!);
  const number = integerOf(token, false);
  return number === 0n || number === 1n ? done(number === 1n ? "true" : "false") : null;
}

function realText(token: TextToken, negative: boolean): ScalarText | null {
  const sign = negative ? "-" : "";
  if (token.kind === "identifier" && reals.has(token.text.toLowerCase()))
    return done(`${sign}${token.text.toLowerCase()}`);
  if (token.kind === "integer" && /^(?:0|[1-9]\d*)$/.test(token.text)) return done(`${sign}${token.text}`);
  return token.kind === "float" ? done(`${sign}${token.text.replace(/[fF]$/, "")}`) : null;
}

/** Parses decimal, hexadecimal and octal integers by Triton's rules; null for other tokens. */
function integerOf(token: TextToken, negative: boolean): bigint | null {
  if (token.kind !== "integer") return null;
  const octal = /^0[0-9]+$/.test(token.text);
  if (octal && !/^[0-7]+$/.test(token.text)) return null;
  const magnitude = BigInt(octal ? `0o${token.text.slice(1)}` : token.text);
  return negative ? -magnitude : magnitude;
}

function enumText(desc: DescEnum, token: TextToken, negative: boolean): ScalarText {
  const names = desc.values.map((value) => value.name);
  if (token.kind === "identifier" && !negative) {
    if (names.includes(token.text)) return done(token.text);
    const nearest = nearestName(token.text, names);
    const hint = nearest === null ? "" : `; did you mean ${nearest}?`;
    return { ok: false, reason: `expected one of ${names.join(", ")}, found '${token.text}'${hint}` };
  }
  const number = integerOf(token, negative);
  const row = number === null ? undefined : desc.values.find((value) => BigInt(value.number) === number);
  if (row) return done(row.name);
  const sign = negative ? "- " : "";
  return { ok: false, reason: `expected one of ${names.join(", ")}, found ${sign}${describeFound(token)}` };
}
