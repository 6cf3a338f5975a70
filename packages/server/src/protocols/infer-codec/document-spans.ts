import { InferenceError } from "@galatea/base";
import { equalsAscii, readJsonString, type JsonScanner } from "../../tensor/index.ts";

/** Offsets of the members of an input in the JSON text; -1 for absent members. `dataEnd` is the offset after the data. */
export interface InputSpans {
  nameAt: number;
  shapeAt: number;
  datatypeAt: number;
  parametersAt: number;
  dataAt: number;
  dataEnd: number;
}

export interface OutputSpans {
  nameAt: number;
  parametersAt: number;
}

/**
 * Maximum number of inputs or outputs of a request. An entry such as `{},` has three bytes of text but needs forty times as much memory.
 */
const listedMax = 100_000;

/** Offsets of the members of a request. A list is null when the member is not an array, and undefined when it is absent. */
export interface DocumentSpans {
  idAt: number;
  parametersAt: number;
  inputs: InputSpans[] | null | undefined;
  outputs: OutputSpans[] | null | undefined;
}

/**
 * Checks the syntax of the whole document and records the offsets of its members, in one pass and without creating objects. As in Triton,
 * later errors concern only the meaning of the document, and the first of several members with the same name is used.
 */
export function scanDocument(scanner: JsonScanner): DocumentSpans {
  const spans: DocumentSpans = { idAt: -1, parametersAt: -1, inputs: undefined, outputs: undefined };
  if (scanner.peek() === -1) scanner.fail("The document is empty.", scanner.at);
  if (scanner.kind() !== "object") {
    scanner.skipValue();
    scanner.finish();
    return spans;
  }
  if (scanner.open(0x7d)) {
    do {
      const name = memberName(scanner, documentMembers);
      if (name === "inputs" && spans.inputs === undefined) spans.inputs = list(scanner, scanInput);
      else if (name === "outputs" && spans.outputs === undefined) spans.outputs = list(scanner, scanOutput);
      else {
        if (name === "id" && spans.idAt === -1) spans.idAt = scanner.at;
        else if (name === "parameters" && spans.parametersAt === -1) spans.parametersAt = scanner.at;
        scanner.skipValue();
      }
    } while (scanner.more(0x7d));
  }
  scanner.finish();
  return spans;
}

const documentMembers = ["id", "inputs", "outputs", "parameters"] as const;
const inputMembers = ["name", "shape", "datatype", "parameters", "data"] as const;
const outputMembers = ["name", "parameters"] as const;

/** Moves to a member's value and returns the member's name; undefined when the name is not in `known`. */
function memberName<Name extends string>(scanner: JsonScanner, known: readonly Name[]): Name | undefined {
  const start = scanner.key();
  const end = scanner.nameEnd;
  scanner.kind();
  for (const name of known) if (equalsAscii(scanner.bytes, start, end, name)) return name;
  if (scanner.bytes.subarray(start, end).includes(0x5c)) {
    const valueAt = scanner.at;
    scanner.at = start - 1;
    const name = readJsonString(scanner);
    scanner.at = valueAt;
    return known.find((candidate) => candidate === name);
  }
  return undefined;
}

function list<Spans>(scanner: JsonScanner, scan: (scanner: JsonScanner) => Spans): Spans[] | null {
  if (scanner.kind() !== "array") {
    scanner.skipValue();
    return null;
  }
  const items: Spans[] = [];
  if (scanner.open(0x5d)) {
    do {
      if (items.length === listedMax)
        throw new InferenceError("INVALID_ARG", `the request has more than ${listedMax} inputs or outputs`);
      items.push(scan(scanner));
    } while (scanner.more(0x5d));
  }
  return items;
}

function scanInput(scanner: JsonScanner): InputSpans {
  const spans: InputSpans = { nameAt: -1, shapeAt: -1, datatypeAt: -1, parametersAt: -1, dataAt: -1, dataEnd: -1 };
  if (scanner.kind() !== "object") scanner.skipValue();
  else if (scanner.open(0x7d)) {
    do {
      const name = memberName(scanner, inputMembers);
      const at = scanner.at;
      scanner.skipValue();
      if (name === "data" && spans.dataAt === -1) {
        spans.dataAt = at;
        spans.dataEnd = scanner.at;
      } else if (name === "name" && spans.nameAt === -1) spans.nameAt = at;
      else if (name === "shape" && spans.shapeAt === -1) spans.shapeAt = at;
      else if (name === "datatype" && spans.datatypeAt === -1) spans.datatypeAt = at;
      else if (name === "parameters" && spans.parametersAt === -1) spans.parametersAt = at;
    } while (scanner.more(0x7d));
  }
  return spans;
}

function scanOutput(scanner: JsonScanner): OutputSpans {
  const spans: OutputSpans = { nameAt: -1, parametersAt: -1 };
  if (scanner.kind() !== "object") scanner.skipValue();
  else if (scanner.open(0x7d)) {
    do {
      const name = memberName(scanner, outputMembers);
      const at = scanner.at;
      scanner.skipValue();
      if (name === "name" && spans.nameAt === -1) spans.nameAt = at;
      else if (name === "parameters" && spans.parametersAt === -1) spans.parametersAt = at;
    } while (scanner.more(0x7d));
  }
  return spans;
}
