/** The composition root: the commands, and the only reader of the environment. */
export { commands, type Command } from "./commands.ts";
export { serverVersion } from "./version.ts";
