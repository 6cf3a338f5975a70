import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** Requests of gRPC's interop tests: the fields of `grpc.testing`'s messages that the cases use, by their published numbers. */
export interface InteropRequest {
  /** Bytes of payload in the single response; null if the responses are listed. */
  readonly responseBytes: number;
  readonly payloadBytes: number;
  /** The responses of a stream. */
  readonly responses: readonly { readonly bytes: number; readonly intervalUs: number }[];
  readonly status: { readonly code: number; readonly message: string } | null;
}

/** SimpleRequest: response_size = 2, payload = 3, response_status = 7. */
export function readSimpleRequest(message: Uint8Array): InteropRequest {
  let responseBytes = 0;
  let payloadBytes = 0;
  let status: InteropRequest["status"] = null;
  forEachField(message, {
    2: (reader) => (responseBytes = reader.int32()),
    3: (reader) => (payloadBytes = readPayload(reader.bytes())),
    7: (reader) => (status = readStatus(reader.bytes())),
  });
  return { responseBytes, payloadBytes, responses: [], status };
}

/** StreamingOutputCallRequest: response_parameters = 2, payload = 3, response_status = 7. */
export function readStreamingRequest(message: Uint8Array): InteropRequest {
  const responses: { bytes: number; intervalUs: number }[] = [];
  let payloadBytes = 0;
  let status: InteropRequest["status"] = null;
  forEachField(message, {
    2: (reader) => responses.push(readParameters(reader.bytes())),
    3: (reader) => (payloadBytes = readPayload(reader.bytes())),
    7: (reader) => (status = readStatus(reader.bytes())),
  });
  return { responseBytes: 0, payloadBytes, responses, status };
}

/** StreamingInputCallRequest: the payload alone, in field 1. */
export function readInputBytes(message: Uint8Array): number {
  let payloadBytes = 0;
  forEachField(message, { 1: (reader) => (payloadBytes = readPayload(reader.bytes())) });
  return payloadBytes;
}

/** SimpleResponse and StreamingOutputCallResponse: a payload of zeros in field 1. */
export function writePayload(byteLength: number): Uint8Array {
  return new BinaryWriter()
    .tag(1, WireType.LengthDelimited)
    .fork()
    .tag(2, WireType.LengthDelimited)
    .bytes(new Uint8Array(byteLength))
    .join()
    .finish();
}

/** StreamingInputCallResponse. */
export function writeAggregate(byteLength: number): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int32(byteLength).finish();
}

function readParameters(message: Uint8Array): { bytes: number; intervalUs: number } {
  const parameters = { bytes: 0, intervalUs: 0 };
  forEachField(message, {
    1: (reader) => (parameters.bytes = reader.int32()),
    2: (reader) => (parameters.intervalUs = reader.int32()),
  });
  return parameters;
}

function readPayload(message: Uint8Array): number {
  let byteLength = 0;
  forEachField(message, { 2: (reader) => (byteLength = reader.bytes().byteLength) });
  return byteLength;
}

function readStatus(message: Uint8Array): { code: number; message: string } {
  const status = { code: 0, message: "" };
  forEachField(message, {
    1: (reader) => (status.code = reader.int32()),
    2: (reader) => (status.message = reader.string()),
  });
  return status;
}

function forEachField(message: Uint8Array, fields: Readonly<Record<number, (reader: BinaryReader) => void>>): void {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    const read = fields[field];
    if (read === undefined) reader.skip(wireType);
    else read(reader);
  }
}
