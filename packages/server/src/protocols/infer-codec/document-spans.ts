import { InferenceError } from "@galatea/base";
import { bytesSpell, readJsonString, type JsonScanner } from "../../tensor/index.ts";

/** Offsets of the parts of an input in the document; -1 for absent ones. `dataEnd` is after the data's last byte. */
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

/** Maximum number of inputs or outputs of a request: `{},` takes three bytes of text and forty times as many of memory. */
const listedMax = 100_000;

/** Offsets of the parts of a request; lists are null when the member is not an array, undefined when it is absent. */
export interface DocumentSpans {
  idAt: number;
  parametersAt: number;
  inputs: InputSpans[] | null | undefined;
  outputs: OutputSpans[] | null | undefined;
}

/**
 * Checks the syntax of the whole document and records the offsets of its parts in one pass, without creating objects. Later errors
 * concern only its meaning, as in Triton. The first of equal names counts, others are skipped.
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

/** Skips a member's name, up to its value; returns undefined when it is not in `known`. */
function memberName<Name extends string>(scanner: JsonScanner, known: readonly Name[]): Name | undefined {
  const start = scanner.key();
  const end = scanner.nameEnd;
  scanner.kind();
  for (const name of known) if (bytesSpell(scanner.bytes, start, end, name)) return name;
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
        throw new InferenceError("INVALID_ARG", `more than ${listedMax} inputs or outputs`);
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
