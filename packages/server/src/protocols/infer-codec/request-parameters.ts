import { InferenceError } from "@galatea/base";
import { noParameters, type ParameterValue, type SequenceFlags } from "../../inference/index.ts";
import type { JsonScanner } from "../../tensor/index.ts";
import { bigintAt, booleanAt, eachMember, stringAt, memberError, unsignedAt } from "./json-access.ts";

export interface RequestParameters {
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  readonly priority: number;
  readonly queueTimeoutUs: number;
  readonly binaryOutputs: boolean;
}

const defaults: RequestParameters = {
  parameters: noParameters,
  sequence: null,
  priority: 0,
  queueTimeoutUs: 0,
  binaryOutputs: false,
};

interface Draft {
  parameters: Map<string, ParameterValue>;
  sequence: { id: bigint | string; start: boolean; end: boolean } | null;
  priority: number;
  queueTimeoutUs: number;
  binaryOutputs: boolean;
}

type ReadReserved = (draft: Draft, scanner: JsonScanner, at: number, name: string) => void;

/** Parameters that have a meaning in the protocol; all others are passed to the model. */
const reserved: ReadonlyMap<string, ReadReserved> = new Map<string, ReadReserved>([
  [
    "sequence_id",
    (draft, scanner, at, name) => {
      sequenceOf(draft).id =
        integerAt(scanner, at) === "unsigned"
          ? bigintAt(scanner, at)
          : stringAt(scanner, at, (text) => memberError(name, text));
    },
  ],
  ["sequence_start", (draft, scanner, at, name) => void (sequenceOf(draft).start = flag(scanner, at, name))],
  ["sequence_end", (draft, scanner, at, name) => void (sequenceOf(draft).end = flag(scanner, at, name))],
  ["priority", (draft, scanner, at, name) => void (draft.priority = unsigned(scanner, at, name))],
  ["timeout", (draft, scanner, at, name) => void (draft.queueTimeoutUs = unsigned(scanner, at, name))],
  ["binary_data_output", (draft, scanner, at, name) => void (draft.binaryOutputs = flag(scanner, at, name))],
]);

/** Reads the `parameters` object of the request at offset `at` (-1: absent). */
export function readRequestParameters(scanner: JsonScanner, at: number): RequestParameters {
  if (at === -1) return defaults;
  if (scanner.bytes[at] !== 0x7b) {
    throw new InferenceError("INTERNAL", "failed to get request params.: attempt to get members for non-object");
  }
  const draft: Draft = { parameters: new Map(), sequence: null, priority: 0, queueTimeoutUs: 0, binaryOutputs: false };
  eachMember(scanner, at, (name, valueAt) => {
    const read = reserved.get(name);
    if (read !== undefined) return read(draft, scanner, valueAt, name);
    if (name.startsWith("triton_")) {
      throw new InferenceError(
        "INVALID_ARG",
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
      );
    }
    draft.parameters.set(name, readCustomParameter(scanner, valueAt, name));
  });
  return draft;
}

function sequenceOf(draft: Draft): { id: bigint | string; start: boolean; end: boolean } {
  draft.sequence ??= { id: 0n, start: false, end: false };
  return draft.sequence;
}

function flag(scanner: JsonScanner, at: number, name: string): boolean {
  return booleanAt(scanner, at, (text) => memberError(name, text));
}

function unsigned(scanner: JsonScanner, at: number, name: string): number {
  return unsignedAt(scanner, at, (text) => memberError(name, text));
}

/** Returns the kind of the integer at `at`; "none" for values that are not 64-bit integers. */
function integerAt(scanner: JsonScanner, at: number): "unsigned" | "signed" | "none" {
  scanner.at = at;
  if (scanner.kind() !== "number" || scanner.number() === "double") return "none";
  const value = bigintAt(scanner, at);
  if (value >= 0n && value < 2n ** 64n) return "unsigned";
  return value < 0n && value >= -(2n ** 63n) ? "signed" : "none";
}

/** Reads the value of a parameter that is passed to the model. */
export function readCustomParameter(scanner: JsonScanner, at: number, name: string): ParameterValue {
  scanner.at = at;
  switch (scanner.kind()) {
    case "string":
      return stringAt(scanner, at, (text) => memberError(name, text));
    case "true":
      return true;
    case "false":
      return false;
    case "number": {
      if (integerAt(scanner, at) !== "none") {
        const value = bigintAt(scanner, at);
        if (value < 2n ** 63n) return value;
      }
      scanner.at = at;
      scanner.number();
      return scanner.exact ? scanner.value : scanner.exactDouble(at);
    }
    default:
      throw new InferenceError(
        "INVALID_ARG",
        `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
      );
  }
}
