import { InferenceError, type InferenceCode, type InferenceReason } from "@galatea/base";

/** The gRPC status codes that this server sends, by name. */
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

/** gRPC's status by inference code, as in Triton. */
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

/** An error with a gRPC status of its own, for errors without an inference code: deadlines, and messages that gRPC itself rejects. */
export class GrpcError extends Error {
  readonly status: GrpcStatus;

  constructor(status: GrpcStatus, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GrpcError";
    this.status = status;
  }
}

/** Statuses by reason, which take precedence over those by code. */
export const grpcStatusOfReason: Readonly<Partial<Record<InferenceReason, GrpcStatus>>> = {
  "memory-exceeded": "RESOURCE_EXHAUSTED",
};

export function grpcStatusOf(thrown: unknown): { readonly status: GrpcStatus; readonly message: string } {
  if (thrown instanceof GrpcError) return thrown;
  const { code, reason, message } = InferenceError.from(thrown);
  const status = (reason === null ? undefined : grpcStatusOfReason[reason]) ?? statusOfInferenceCode[code];
  return { status, message };
}

/** Maximum length of a status text. Clients reject metadata of more than 8 KiB, and escaping makes the text longer. */
const messageBytesMax = 6 * 1024;
const cutNote = " ... (cut)";

/**
 * Encodes `grpc-message`: printable ASCII except `%` is unchanged; every other byte of the UTF-8 text becomes `%XX`. Spaces at both ends
 * are escaped too, because some clients drop header fields that begin or end with a space.
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
