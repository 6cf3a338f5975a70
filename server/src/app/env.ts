import type { UpOptions } from "./options.ts";
export function runEnv(_options: UpOptions): Promise<number> {
  return Promise.reject(new Error("not yet"));
}
