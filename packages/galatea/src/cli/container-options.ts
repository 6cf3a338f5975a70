import { containerArguments, type ServeOptions } from "../app/index.ts";
import { UsageError, parseFlags, type ParsedFlags } from "./flags.ts";
import { serveFlags } from "./serve-flags.ts";
import { serveOptions } from "./serve-options.ts";

/**
 * The options of `serve`; a container that its environment configures also takes those that the environment gives.
 * The command line has the last word: what is given there cannot be changed by the environment.
 */
export function servedOptions(parsed: ParsedFlags, containerWords = containerArguments): ServeOptions {
  const options = serveOptions(parsed);
  if (options.container?.fromEnvironment !== true) return options;
  const joined = withEnvironment(parsed, containerWords());
  return {
    ...joined,
    container: { ...options.container, listen: joined.container?.listen ?? options.container.listen },
  };
}

/** The command line alone is right: what is wrong now, the environment brought. */
function withEnvironment({ argv }: ParsedFlags, words: readonly string[]): ServeOptions {
  try {
    const [extra] = parseFlags(words, serveFlags).positionals;
    if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
    return serveOptions(parseFlags([...words, ...argv], serveFlags));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`the container's environment: ${error.message}`);
  }
}
