import { isUtf8 } from "node:buffer";
import { InferenceError } from "@galatea/base";
import type { ParameterValue } from "../inference/index.ts";

/** Parameter names that have a meaning in the protocols; headers with these names are rejected. */
const reservedNames: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "headers",
  "binary_data_output",
]);
/** Metadata that configures ModelStreamInfer itself, and is therefore never forwarded. */
const ownMetadata = "triton_grpc_error";

type Parameters = ReadonlyMap<string, ParameterValue>;

/**
 * Returns the request's parameters together with the headers whose names match the pattern. A header replaces a parameter of the same name;
 * the last of several headers with the same name is used. `rawHeaders` alternates names and values. Throws INVALID_ARG for a reserved name.
 */
export function withForwardedHeaders(
  parameters: Parameters,
  rawHeaders: readonly string[],
  pattern: RegExp | null,
): Parameters {
  if (pattern === null) return parameters;
  let all: Map<string, ParameterValue> | null = null;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (!pattern.test(name) || name === ownMetadata) continue;
    const lower = name.toLowerCase();
    if (reservedNames.has(lower) || lower.startsWith("triton_"))
      throw new InferenceError("INVALID_ARG", `header '${name}' is reserved for Triton usage and cannot be forwarded.`);
    (all ??= new Map(parameters)).set(name, textOf(rawHeaders[at + 1] as string));
  }
  return all ?? parameters;
}

/** Decodes a header value as UTF-8, which clients usually send; the listeners have decoded it as Latin-1. */
function textOf(value: string): string {
  if (Buffer.byteLength(value) === value.length) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : value;
}
