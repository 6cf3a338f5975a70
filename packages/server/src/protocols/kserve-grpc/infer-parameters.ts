import { InferenceError } from "@galatea/base";
import type { ParameterValue, SequenceFlags } from "../../inference/index.ts";
import { withForwardedHeaders } from "../forwarded-headers.ts";
import { malformedMessageError, wireTypes, type ProtobufReader } from "./protobuf-reader.ts";

/** An InferParameter with the name of its oneof member; "none" when no member is set. */
export type WireParameter =
  | { readonly kind: "bool_param"; readonly value: boolean }
  | { readonly kind: "int64_param" | "uint64_param"; readonly value: bigint }
  | { readonly kind: "string_param"; readonly value: string }
  | { readonly kind: "double_param"; readonly value: number }
  | { readonly kind: "none" };

const none: WireParameter = { kind: "none" };

/** Reads one entry of a parameter map. The last of several entries with the same name is used. */
export function readParameterEntry(entry: ProtobufReader, into: Map<string, WireParameter>): void {
  let name = "";
  let parameter: WireParameter = none;
  while (entry.next()) {
    if (entry.field === 1) name = entry.string();
    else if (entry.field === 2) parameter = readParameter(entry.message());
    else entry.skip();
  }
  into.set(name, parameter);
}

function readParameter(reader: ProtobufReader): WireParameter {
  let parameter: WireParameter = none;
  while (reader.next()) {
    if (reader.field === 3) parameter = { kind: "string_param", value: reader.string() };
    else if (reader.field === 4) {
      if (reader.wireType !== wireTypes.fixed64)
        throw malformedMessageError(
          `the wire type of double_param must be ${wireTypes.fixed64} (found ${reader.wireType})`,
        );
      parameter = { kind: "double_param", value: reader.double() };
    } else if (reader.wireType !== wireTypes.varint) reader.skip();
    else if (reader.field === 1) parameter = { kind: "bool_param", value: reader.bool() };
    else if (reader.field === 2) parameter = { kind: "int64_param", value: reader.int64() };
    else if (reader.field === 5) parameter = { kind: "uint64_param", value: reader.uint64() };
    else reader.skip();
  }
  return parameter;
}

/** The parameters of a request. Parameters that have no meaning in the protocol are passed to the model. */
export interface MessageParameters {
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  readonly priority: number;
  readonly queueTimeoutUs: number;
  /** True if the client wants an empty final response when a decoupled model ends without data. */
  readonly wantsEmptyFinalResponse: boolean;
}

interface Draft {
  parameters: Map<string, ParameterValue>;
  sequence: { id: bigint | string; start: boolean; end: boolean } | null;
  priority: number;
  queueTimeoutUs: number;
  wantsEmptyFinalResponse: boolean;
}

type ReadReserved = (draft: Draft, parameter: WireParameter, name: string) => void;

const emptyFinalResponse = "triton_enable_empty_final_response";

const reserved: ReadonlyMap<string, ReadReserved> = new Map<string, ReadReserved>([
  [
    "sequence_id",
    (draft, parameter, name) => {
      if (parameter.kind === "string_param") sequenceOf(draft).id = parameter.value;
      else if (parameter.kind === "int64_param") sequenceOf(draft).id = BigInt.asUintN(64, parameter.value);
      else throw wrongType(name, "int64_param or string_param");
    },
  ],
  ["sequence_start", (draft, parameter, name) => void (sequenceOf(draft).start = flag(parameter, name))],
  ["sequence_end", (draft, parameter, name) => void (sequenceOf(draft).end = flag(parameter, name))],
  [
    "priority",
    (draft, parameter, name) => {
      if (parameter.kind !== "int64_param" && parameter.kind !== "uint64_param")
        throw wrongType(name, "int64_param or uint64_param");
      if (parameter.value < 0n)
        throw new InferenceError("INVALID_ARG", `invalid value for '${name}', expected value >= 0.`);
      draft.priority = Number(parameter.value);
    },
  ],
  [
    "timeout",
    (draft, parameter, name) => {
      if (parameter.kind !== "int64_param") throw wrongType(name, "int64_param");
      // Triton converts a negative number to unsigned, which means no limit.
      draft.queueTimeoutUs = Number(BigInt.asUintN(64, parameter.value));
    },
  ],
  [emptyFinalResponse, (draft, parameter, name) => void (draft.wantsEmptyFinalResponse = flag(parameter, name))],
]);

/** The metadata of a call, which alternates names and values, and the pattern of names that become request parameters (null for none). */
export interface ForwardedHeaders {
  readonly rawHeaders: readonly string[];
  readonly pattern: RegExp | null;
}

/** Converts the parameters of a message. Throws INVALID_ARG with Triton's text. */
export function requestParameters(
  wire: ReadonlyMap<string, WireParameter>,
  { rawHeaders, pattern }: ForwardedHeaders,
): MessageParameters {
  const draft: Draft = {
    parameters: new Map(),
    sequence: null,
    priority: 0,
    queueTimeoutUs: 0,
    wantsEmptyFinalResponse: false,
  };
  for (const [name, parameter] of wire) {
    const read = reserved.get(name);
    if (read !== undefined) read(draft, parameter, name);
    else if (name.startsWith("triton_")) {
      throw new InferenceError(
        "INVALID_ARG",
        `parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: ${emptyFinalResponse}`,
      );
    } else draft.parameters.set(name, readCustomParameter(name, parameter));
  }
  return { ...draft, parameters: withForwardedHeaders(draft.parameters, rawHeaders, pattern) };
}

function readCustomParameter(name: string, parameter: WireParameter): ParameterValue {
  if (parameter.kind === "none" || parameter.kind === "uint64_param")
    throw wrongType(name, "int64_param, bool_param, or string_param");
  return parameter.value;
}

function sequenceOf(draft: Draft): { id: bigint | string; start: boolean; end: boolean } {
  draft.sequence ??= { id: 0n, start: false, end: false };
  return draft.sequence;
}

function flag(parameter: WireParameter, name: string): boolean {
  if (parameter.kind !== "bool_param") throw wrongType(name, "bool_param");
  return parameter.value;
}

function wrongType(name: string, expected: string): InferenceError {
  return new InferenceError("INVALID_ARG", `invalid value type for '${name}' parameter, expected ${expected}.`);
}
