/**
 * The command line: runs the commands of `app/` and prints their help texts. This module uses no HTTP and no models.
 */
export { runCommandLine } from "./command-line.ts";
