import { InstanceFailure, ModelDataError } from "../instances/index.ts";

const logLinesMax = 8;
/** An error line in the format of Triton and of our own containers. */
const errorLine = /^E\d{4} [\d:.]+ \d+ \S+\] (.*)$/;
/** The directory that is /opt/ml inside of a container. */
const mlDirectory = /\/[^\s"'(]*\/instances\/i-[0-9a-f]+\/ml\//g;

/** Returns a container's name in a sentence; SageMaker names the containers of a pipeline without a noun. */
function whoOf({ containerName }: InstanceFailure): string {
  return containerName === "primary" ? "The primary container" : `The ${containerName}`;
}

/** Returns the FailureReason: SageMaker's sentence, then the cause, and the last line that the container printed. */
export function failureSentence(error: unknown, variantName: string): string {
  if (error instanceof ModelDataError) return error.message;
  if (error instanceof InstanceFailure) {
    const printed = error.lastLines.map((line) => line.replaceAll(mlDirectory, "/opt/ml/"));
    const at = printed.findIndex((line) => errorLine.test(line));
    const cause = causeIn(printed[at] ?? "");
    // Lines after the cause are its consequences.
    const lines = printed
      .slice(0, at < 0 ? undefined : at)
      .slice(-logLinesMax)
      .join("\n");
    return (
      `${whoOf(error)} for production variant ${variantName} did not pass the ping health check. ` +
      "Please check CloudWatch logs for this endpoint. " +
      `(${error.message}${cause === null ? "" : `: ${cause}`}${lines === "" ? "" : `; last lines:\n${lines}`})`
    );
  }
  return `Production variant ${variantName} could not be started: ${error instanceof Error ? error.message : String(error)}`;
}

/** Returns the message of an error line. For a Python traceback: its last line, and the place that raised it. */
function causeIn(line: string): string | null {
  const [, told] = errorLine.exec(line) ?? [];
  if (told === undefined) return null;
  const [what = "", where = ""] = unquoted(told).split("\n\nAt:\n");
  const [place = ""] = where.trim().split("\n");
  const cause = what.trim();
  if (place === "") return cause;
  return cause.endsWith(".") ? `${cause} Raised at ${place}` : `${cause}, at ${place}`;
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
