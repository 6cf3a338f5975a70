/**
 * The eight status codes of the inference vocabulary, as Triton's core names them (TRITONSERVER_Error_Code).
 * A protocol owns one table from code to its own status; nothing below a protocol knows a status.
 */
export const inferenceCodes = [
  "UNKNOWN",
  "INTERNAL",
  "NOT_FOUND",
  "INVALID_ARG",
  "UNAVAILABLE",
  "UNSUPPORTED",
  "ALREADY_EXISTS",
  "CANCELLED",
] as const;

export type InferenceCode = (typeof inferenceCodes)[number];

/** `memory-full` passes when other requests end, `memory-exceeded` never does. `out-of-memory`: there is no memory for a model, and unloading others may help. */
export type MemoryReason = "memory-full" | "memory-exceeded" | "out-of-memory";

/**
 * What an error is beyond its code, where somebody must tell it apart: nobody looks for words in a message.
 * - `request-refused`: the core's checks or its queues refused the request before any model saw it
 * - `inflation-failed`: a compressed body is none, or is too large when expanded
 * - `not-a-string`: an element of JSON data is something else than the text that was expected
 * - `not-polled`: a model could not be looked at: its directory, or its configuration
 */
export type InferenceReason = MemoryReason | "request-refused" | "inflation-failed" | "not-a-string" | "not-polled";

const memoryReasons: ReadonlySet<InferenceReason | null> = new Set<MemoryReason>([
  "memory-full",
  "memory-exceeded",
  "out-of-memory",
]);

export function isMemoryReason(reason: InferenceReason | null): reason is MemoryReason {
  return memoryReasons.has(reason);
}

export interface InferenceErrorOptions extends ErrorOptions {
  readonly reason?: InferenceReason | null;
}

/** What the server refuses or fails to do. The message is an interface: clients match on its prefix. */
export class InferenceError extends Error {
  readonly code: InferenceCode;
  readonly reason: InferenceReason | null;

  constructor(code: InferenceCode, message: string, options?: InferenceErrorOptions) {
    super(message, options);
    this.name = "InferenceError";
    this.code = code;
    this.reason = options?.reason ?? null;
  }

  /** The only converter from what was thrown to what is reported; a bug becomes INTERNAL with its text. */
  static from(thrown: unknown): InferenceError {
    if (thrown instanceof InferenceError) return thrown;
    return new InferenceError("INTERNAL", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
  }
}

/** Text forms of the codes as they appear as prefixes in load errors; CANCELLED has none in Triton. */
export const inferenceCodeText: Readonly<Record<InferenceCode, string>> = {
  UNKNOWN: "Unknown",
  INTERNAL: "Internal",
  NOT_FOUND: "Not found",
  INVALID_ARG: "Invalid argument",
  UNAVAILABLE: "Unavailable",
  UNSUPPORTED: "Unsupported",
  ALREADY_EXISTS: "Already exists",
  CANCELLED: "<invalid code>",
};

/**
 * A hosting-plane error with the AWS service's own code (`ValidationException`, `NoSuchKey`, ...).
 * `members` are the extra modelled members of the error shape (ModelError's OriginalStatusCode, ...).
 * The wire layer takes the HTTP status from the service's model; `statusFallback` serves codes no model lists.
 */
export class AwsError extends Error {
  readonly code: string;
  readonly members: Readonly<Record<string, unknown>>;
  readonly statusFallback: number;

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & { members?: Readonly<Record<string, unknown>>; statusFallback?: number } = {},
  ) {
    super(message, options);
    this.name = "AwsError";
    this.code = code;
    this.members = options.members ?? {};
    this.statusFallback = options.statusFallback ?? 400;
  }
}

/** Bugs assert; circumstances throw one of the errors above. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}

/** The end of every choice over a closed union: a member that was added later fails to compile here. */
export function unreachable(value: never): never {
  throw new Error(`a case that cannot be: ${JSON.stringify(value)}`);
}
