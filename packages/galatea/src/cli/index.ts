/** The command line: one table of commands, one of flags each. Knows no HTTP and no models; starts what `app/` composes. */
export { runCommandLine } from "./command-line.ts";
