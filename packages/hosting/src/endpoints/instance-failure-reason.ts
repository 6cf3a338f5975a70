import { InstanceFailure, ModelDataError } from "../instances/index.ts";

const logLinesMax = 8;
/** Matches an error line in Triton's log format, which the built-in containers also use. */
const errorLine = /^E\d{4} [\d:.]+ \d+ \S+\] (.*)$/;
/** Matches the host path of the directory that a container sees as /opt/ml. */
const mlDirectory = /\/[^\s"'(]*\/instances\/i-[0-9a-f]+\/ml\//g;

/**
 * Returns the subject of SageMaker's sentence about a container. The sentence uses the word "container" only for the
 * name "primary".
 */
function containerSubject({ containerName }: InstanceFailure): string {
  return containerName === "primary" ? "The primary container" : `The ${containerName}`;
}

/**
 * Returns the FailureReason of a failed instance: SageMaker's sentence, followed by the cause and the container's last
 * log lines.
 */
export function instanceFailureReason(error: unknown, variantName: string): string {
  if (error instanceof ModelDataError) return error.message;
  if (error instanceof InstanceFailure) {
    const printed = error.lastLines.map((line) => line.replaceAll(mlDirectory, "/opt/ml/"));
    const at = printed.findIndex((line) => errorLine.test(line));
    const cause = causeIn(printed[at] ?? "");
    // Lines after the error line are omitted: they only report its consequences.
    const lines = printed
      .slice(0, at < 0 ? undefined : at)
      .slice(-logLinesMax)
      .join("\n");
    return (
      `${containerSubject(error)} for production variant ${variantName} did not pass the ping health check. ` +
      "Please check CloudWatch logs for this endpoint. " +
      `(${error.message}${cause === null ? "" : `: ${cause}`}${lines === "" ? "" : `; last lines:\n${lines}`})`
    );
  }
  return `Production variant ${variantName} could not be started: ${error instanceof Error ? error.message : String(error)}`;
}

/** Returns the message of an error line; for a Python traceback, its last line and the location that raised the exception. */
function causeIn(line: string): string | null {
  const [, message] = errorLine.exec(line) ?? [];
  if (message === undefined) return null;
  const [what = "", where = ""] = unquoted(message).split("\n\nAt:\n");
  const [location = ""] = where.trim().split("\n");
  const cause = what.trim();
  if (location === "") return cause;
  return cause.endsWith(".") ? `${cause} Raised at ${location}` : `${cause}, at ${location}`;
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
