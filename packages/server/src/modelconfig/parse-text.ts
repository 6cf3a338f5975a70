import { fromText } from "@bufbuild/protobuf/txtpb";
import { InferenceError } from "@galatea/base";
import { ModelConfigSchema, type ModelConfigMessage } from "./message.ts";
import { configShape } from "./text-shape.ts";
import { textLimits, walkText, type TextProblem } from "./text-walk.ts";

/** Maximum size of a configuration file; larger files are rejected before they are read. */
export const configTextBytesMax = textLimits.bytesMax;

/**
 * Parses config.pbtxt. `fileName` appears in the error only: INVALID_ARG `failed to read text proto from <file>: line L, column C:
 * <field, what was expected, what was found>` (Triton reports the first part and logs the position).
 */
export function parseConfigText(source: string, fileName: string): ModelConfigMessage {
  const { message, problems } = readConfigText(source);
  const [first] = problems;
  if (message !== null && first === undefined) return message;
  throw new InferenceError("INVALID_ARG", `failed to read text proto from ${fileName}: ${problemText(first!)}`);
}

/** Parses config.pbtxt for tools that show all problems at once. The message is null when there are any. */
export function readConfigText(source: string): {
  readonly message: ModelConfigMessage | null;
  readonly problems: readonly TextProblem[];
} {
  if (source.length > textLimits.bytesMax) {
    return {
      message: null,
      problems: [{ line: 1, column: 1, message: `longer than ${textLimits.bytesMax} characters` }],
    };
  }
  const { problems, normalised } = walkText(source, configShape);
  if (problems.length > 0) return { message: null, problems };
  try {
    return { message: fromText(ModelConfigSchema, normalised), problems: [] };
  } catch (refused) {
    // The only remaining error of the library is a string that is not valid UTF-8.
    const message = refused instanceof Error ? refused.message : String(refused);
    return { message: null, problems: [{ line: 1, column: 1, message }] };
  }
}

function problemText(problem: TextProblem): string {
  return `line ${problem.line}, column ${problem.column}: ${problem.message}`;
}
