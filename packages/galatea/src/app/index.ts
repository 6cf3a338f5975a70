/** The commands and their dependencies. Only this module reads the environment. */
export { commands, type Command } from "./commands.ts";
export { serverVersion } from "./version.ts";
