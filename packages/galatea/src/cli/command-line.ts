import { commands, serverVersion, type Command } from "../app/index.ts";
import { didYouMean, UsageError } from "../options/index.ts";
import { commandHelp, programHelp } from "./help.ts";

/** argv without the program's own words in, exit code out. 0 done or stopped by a signal, 1 wrong usage or failure. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const [verb, ...rest] = argv;
  const command = commands.find((each) => each.name === verb);
  const asksHelp = rest.includes("--help") || rest.includes("-h");
  // A server whose log nobody reads any more has a fault; what prints and ends has done its work.
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

/** `galatea env | head -1`: who wanted no more than the first lines has them; what we return stays the same. */
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
