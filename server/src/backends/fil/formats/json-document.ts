import { unreachable } from "../../../base/index.ts";
import { JsonScanner, JsonSyntaxError, readJsonString } from "../../../tensor/index.ts";
import { broken } from "../forest.ts";
import { NumberList, type Value, ValueCount } from "./document.ts";

/** Reads JSON, with the NaN and Infinity that XGBoost writes. Throws where it is none, or is nested deep. */
export function readJsonDocument(bytes: Uint8Array): Value {
  const scanner = new JsonScanner(bytes);
  const count = new ValueCount();
  try {
    const value = readValue(scanner, count);
    scanner.finish();
    return value;
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw broken("the file", `is not JSON: ${error.message}`);
    throw error;
  }
}

function readValue(scanner: JsonScanner, count: ValueCount): Value {
  const kind = scanner.kind();
  if (kind === "number") return readNumber(scanner);
  count.add();
  switch (kind) {
    case "object":
      return readObject(scanner, count);
    case "array":
      return readArray(scanner, count);
    case "string":
      return readText(scanner);
    case "true":
    case "false":
    case "null":
      scanner.skipValue();
      return kind === "null" ? null : kind === "true";
    default:
      return unreachable(kind);
  }
}

function readNumber(scanner: JsonScanner): number {
  const start = scanner.at;
  scanner.number();
  return scanner.exact ? scanner.value : scanner.exactDouble(start);
}

/** Reading a string does not check it. */
function readText(scanner: JsonScanner): string {
  const start = scanner.at;
  scanner.skipString();
  scanner.at = start;
  return readJsonString(scanner);
}

function readObject(scanner: JsonScanner, count: ValueCount): ReadonlyMap<string, Value> {
  const members = new Map<string, Value>();
  if (!scanner.open(0x7d)) return members;
  do {
    scanner.peek();
    const start = scanner.at;
    scanner.key();
    const behind = scanner.at;
    scanner.at = start;
    const name = readJsonString(scanner);
    scanner.at = behind;
    if (members.has(name)) throw broken("the file", `has '${name}' twice in one object, at ${start}`);
    members.set(name, readValue(scanner, count));
  } while (scanner.more(0x7d));
  return members;
}

function readArray(scanner: JsonScanner, count: ValueCount): Value {
  if (!scanner.open(0x5d)) return new Float64Array(0);
  const isNumbers = isOfNumbers(scanner);
  if (!isNumbers) {
    const values: Value[] = [];
    do values.push(readValue(scanner, count));
    while (scanner.more(0x5d));
    return values;
  }
  const numbers = new NumberList();
  do {
    if (!isOfNumbers(scanner)) throw broken("the file", `has something else in a list of numbers, at ${scanner.at}`);
    const value = scanner.kind() === "number" ? readNumber(scanner) : readValue(scanner, count);
    count.addNumbers(1);
    numbers.push(Number(value));
  } while (scanner.more(0x5d));
  return numbers.end();
}

function isOfNumbers(scanner: JsonScanner): boolean {
  const kind = scanner.kind();
  return kind === "number" || kind === "true" || kind === "false";
}
