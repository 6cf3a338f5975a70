/** The composition root: what the commands start, and the only reader of the environment. */
export { runEnv } from "./env.ts";
export type { ServeOptions, UpOptions } from "./options.ts";
export { runServe } from "./serve.ts";
export { runUp } from "./up.ts";
export { runValidate } from "./validate.ts";
