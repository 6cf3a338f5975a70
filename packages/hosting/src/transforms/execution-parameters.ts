import { transformClientError } from "./transform-error.ts";
import type { ExecutionParameters } from "./transform-request.ts";

const strategies: Readonly<Record<string, NonNullable<ExecutionParameters["BatchStrategy"]>>> = {
  MULTI_RECORD: "MultiRecord",
  SINGLE_RECORD: "SingleRecord",
};

/**
 * Parses a container's response to GET /execution-parameters. `text` is null if the container does not support the
 * path. Invalid members are ignored.
 */
export function readExecutionParameters(text: string | null): ExecutionParameters {
  if (text === null || text.trim() === "") return {};
  let reported: unknown;
  try {
    reported = JSON.parse(text);
  } catch (error) {
    throw transformClientError("the container's /execution-parameters is not JSON", { cause: error });
  }
  if (typeof reported !== "object" || reported === null) return {};
  const { MaxConcurrentTransforms, MaxPayloadInMB, BatchStrategy } = reported as Record<string, unknown>;
  const strategy = strategies[String(BatchStrategy)];
  return {
    ...(isCount(MaxConcurrentTransforms) ? { MaxConcurrentTransforms } : {}),
    ...(isCount(MaxPayloadInMB) ? { MaxPayloadInMB } : {}),
    ...(strategy === undefined ? {} : { BatchStrategy: strategy }),
  };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
