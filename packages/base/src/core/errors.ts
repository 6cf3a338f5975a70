/**
 * Error codes, named as in Triton's core (TRITONSERVER_Error_Code). Each protocol maps these codes to its own statuses
 * in one table. Other modules use only the codes.
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

/**
 * The memory condition that an error reports. `memory-full` is temporary: it ends when other requests end.
 * `memory-exceeded` is permanent. With `out-of-memory`, a model does not fit in memory, and unloading other models may
 * help.
 */
export type MemoryReason = "memory-full" | "memory-exceeded" | "out-of-memory";

/**
 * A reason that is more precise than the error's code, for callers that must distinguish errors without matching messages.
 * - `request-refused`: the checks of the core or its queues rejected the request before a model saw it
 * - `inflation-failed`: a compressed body is invalid, or too large when expanded
 * - `not-a-string`: an element of JSON data is not the string that was expected
 * - `not-polled`: a model's directory or configuration could not be read
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

/**
 * A request that the server rejects, or a failure of the server. The message is part of the interface, because clients
 * match its prefix.
 */
export class InferenceError extends Error {
  readonly code: InferenceCode;
  readonly reason: InferenceReason | null;

  constructor(code: InferenceCode, message: string, options?: InferenceErrorOptions) {
    super(message, options);
    this.name = "InferenceError";
    this.code = code;
    this.reason = options?.reason ?? null;
  }

  /**
   * Returns an InferenceError unchanged. Converts any other thrown value to an InferenceError INTERNAL with the value's
   * message.
   */
  static from(thrown: unknown): InferenceError {
    if (thrown instanceof InferenceError) return thrown;
    return new InferenceError("INTERNAL", thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
  }
}

/** The codes as they appear as prefixes in load errors. Triton has no text for CANCELLED. */
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
 * An error of an AWS API, with the AWS service's own code (`ValidationException`, `NoSuchKey`, ...). `members` are the
 * additional members of the modelled error shape, such as ModelError's OriginalStatusCode. The wire module reads the
 * HTTP status from the service's model; `statusFallback` is the status of a code that the model does not list.
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

/** Throws if `condition` is false, which only a bug can cause. For other failures, throw one of the errors above. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}

/** Marks the end of a branch over all members of a union. Code that does not handle every member fails to compile. */
export function unreachable(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
