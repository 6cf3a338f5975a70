import { commands, serverVersion, type Command } from "../app/index.ts";
import { didYouMean, UsageError } from "../options/index.ts";
import { commandHelp, programHelp } from "./help.ts";

/**
 * Runs a command line, which must be given without the words that start the program. Resolves with the exit code: 0 for
 * success or a stop by a signal, 1 for wrong usage or a failure.
 */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const [verb, ...rest] = argv;
  const command = commands.find((each) => each.name === verb);
  const asksHelp = rest.includes("--help") || rest.includes("-h");
  // A command that prints and ends may ignore that the reader has closed stdout. A server must not, because its log
  // would be lost.
  if (command?.lasting !== true || asksHelp) outliveReader(process.stdout);
  if (verb === "--version" || verb === "-V" || verb === "version") {
    process.stdout.write(`galatea ${serverVersion}\n`);
    return 0;
  }
  if (verb === undefined || verb === "--help" || verb === "-h" || verb === "help") {
    const named = commands.find((each) => each.name === rest[0]);
    process.stdout.write(named === undefined ? programHelp(commands) : commandHelp(named));
    return verb === undefined ? 1 : 0;
  }
  if (command === undefined) {
    const names = commands.map((each) => each.name);
    process.stderr.write(`galatea: unknown command '${verb}'${didYouMean(verb, names, "")}\nTry \`galatea --help\`.\n`);
    return 1;
  }
  if (asksHelp) {
    process.stdout.write(commandHelp(command));
    return 0;
  }
  return run(command, rest);
}

/** Ignores that the reader has closed the output, as in `galatea env | head -1`. The exit code does not change. */
function outliveReader(stream: NodeJS.WriteStream): void {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

async function run(command: Command, argv: readonly string[]): Promise<number> {
  try {
    return await command.run(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\nTry \`galatea ${command.name} --help\`.\n`);
    return 1;
  }
}
