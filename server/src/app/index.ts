/** The composition root: what the commands start, and the only reader of the environment. */
export { runEnv, runServe, runUp, runValidate } from "./commands.ts";
export type { ServeOptions, UpOptions } from "./options.ts";
export { serverVersion } from "./version.ts";
