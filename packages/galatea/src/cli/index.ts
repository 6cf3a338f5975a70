/**
 * The command line: a table of commands, and a table of flags for each. Uses no HTTP and no models; starts the commands
 * of `app/`.
 */
export { runCommandLine } from "./command-line.ts";
