import { InferenceError } from "@galatea/base";
import { type JsonScanner, JsonSyntaxError, readJsonString } from "../../tensor/index.ts";

/** Returns Triton's error for a member that cannot be read. */
export function memberError(member: string, text: string): InferenceError {
  return new InferenceError("INTERNAL", `Unable to parse '${member}': ${text}`);
}

export function missingMemberError(member: string): InferenceError {
  return memberError(member, `attempt to access non-existing object member '${member}'`);
}

/** Runs `parse` and converts a JSON syntax error to Triton's error (status 500). */
export function parsingRequestJson<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new InferenceError("INTERNAL", `failed to parse the request JSON buffer: ${error.message}`, { cause: error });
  }
}

const nonString = "attempt to access JSON non-string as string";
const nonBoolean = "attempt to access JSON non-boolean as boolean";
const nonUnsigned = "attempt to access JSON non-unsigned-integer as unsigned-integer";

/**
 * A function that converts the text of an accessor's error to an error. Each accessor below reads the value at offset `at` of a checked
 * document.
 */
export type AccessorError = (text: string) => InferenceError;

export function stringAt(scanner: JsonScanner, at: number, fail: AccessorError): string {
  scanner.at = at;
  if (scanner.peek() !== 0x22) throw fail(nonString);
  return readJsonString(scanner);
}

export function booleanAt(scanner: JsonScanner, at: number, fail: AccessorError): boolean {
  scanner.at = at;
  const kind = scanner.kind();
  if (kind !== "true" && kind !== "false") throw fail(nonBoolean);
  scanner.skipValue();
  return kind === "true";
}

/** Reads an unsigned integer as a double. Values over 2^53 are approximate; every caller has a lower limit and rejects them. */
export function unsignedAt(scanner: JsonScanner, at: number, fail: AccessorError): number {
  scanner.at = at;
  if (scanner.kind() !== "number" || scanner.number() === "double" || scanner.value < 0 || scanner.value >= 2 ** 64) {
    throw fail(nonUnsigned);
  }
  return scanner.value;
}

/** Reads the integer that starts at `at` exactly. */
export function bigintAt(scanner: JsonScanner, at: number): bigint {
  scanner.at = at;
  const kind = scanner.number();
  if (kind === "safeInteger") return BigInt(scanner.value);
  let text = "";
  for (let i = at; i < scanner.at; i++) text += String.fromCharCode(scanner.bytes[i]!);
  return BigInt(text);
}

/**
 * Maximum number of members and dimensions of a request that are visited individually, because each visit costs time, and memory in
 * addition to the text.
 */
const visitedMax = 100_000;

/** Counts a visited value of the document. Throws when there are too many. */
export function countVisited(scanner: JsonScanner): void {
  if (++scanner.visitedCount > visitedMax)
    throw new InferenceError("INVALID_ARG", `a request has at most ${visitedMax} parameters and dimensions`);
}

/**
 * Calls `visit` with the name and offset of each member of the object at `at`. Only the first of several members with the same name is
 * visited.
 */
export function eachMember(scanner: JsonScanner, at: number, visit: (name: string, valueAt: number) => void): void {
  scanner.at = at;
  if (!scanner.open(0x7d)) return;
  const seen = new Set<string>();
  do {
    countVisited(scanner);
    const nameAt = scanner.key() - 1;
    scanner.peek();
    const valueAt = scanner.at;
    scanner.at = nameAt;
    const name = readJsonString(scanner);
    if (!seen.has(name)) {
      seen.add(name);
      visit(name, valueAt);
    }
    scanner.at = valueAt;
    scanner.skipValue();
  } while (scanner.more(0x7d));
}
