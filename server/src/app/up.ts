import type { UpOptions } from "./options.ts";
export function runUp(_options: UpOptions): Promise<number> {
  return Promise.reject(new Error("not yet"));
}
