import { InferenceError, type InferenceCode, type InferenceReason } from "@galatea/base";

/** The status codes of gRPC that this server gives, by their published names. */
export const grpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

export type GrpcStatus = keyof typeof grpcStatus;

/** The one table from the inference vocabulary to gRPC's status, as Triton has it. */
export const statusOfInferenceCode: Readonly<Record<InferenceCode, GrpcStatus>> = {
  UNKNOWN: "UNKNOWN",
  INTERNAL: "INTERNAL",
  NOT_FOUND: "NOT_FOUND",
  INVALID_ARG: "INVALID_ARGUMENT",
  UNAVAILABLE: "UNAVAILABLE",
  UNSUPPORTED: "UNIMPLEMENTED",
  ALREADY_EXISTS: "ALREADY_EXISTS",
  CANCELLED: "CANCELLED",
};

/** A status that has no name in the inference vocabulary: deadlines, and messages that gRPC itself refuses. */
export class GrpcError extends Error {
  readonly status: GrpcStatus;

  constructor(status: GrpcStatus, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GrpcError";
    this.status = status;
  }
}

/** Where an error's reason says more than its code. */
const statusOfReason: Readonly<Partial<Record<InferenceReason, GrpcStatus>>> = {
  "memory-exceeded": "RESOURCE_EXHAUSTED",
};

export function grpcStatusOf(thrown: unknown): { readonly status: GrpcStatus; readonly message: string } {
  if (thrown instanceof GrpcError) return thrown;
  const { code, reason, message } = InferenceError.from(thrown);
  const status = (reason === null ? undefined : statusOfReason[reason]) ?? statusOfInferenceCode[code];
  return { status, message };
}

/** Clients refuse metadata of more than 8 KiB; a status text is a part of it, and its escapes make it longer. */
const messageBytesMax = 6 * 1024;
const cutNote = " ... (cut)";

/**
 * `grpc-message`: printable ASCII but for `%` as it is, every other byte of the UTF-8 as `%XX`. A blank at either end is escaped, too:
 * clients that check HTTP/2's fields for such blanks drop the text.
 */
export function encodeStatusMessage(message: string): string {
  if (message.length < messageBytesMax && /^(?! )[ -$&-~]*(?<! )$/.test(message)) return message;
  let text = "";
  for (const character of message) {
    const encoded = /^[ -$&-~]$/.test(character) ? character : escaped(character);
    if (text.length + encoded.length > messageBytesMax - cutNote.length - 2) return text + cutNote;
    text += encoded;
  }
  return text.replaceAll(/^ | $/g, "%20");
}

function escaped(character: string): string {
  let text = "";
  for (const byte of Buffer.from(character, "utf8")) text += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return text;
}
