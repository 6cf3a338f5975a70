import { isLoopbackName } from "@galatea/aws";
import type { UpOptions } from "../options/index.ts";

/**
 * Returns the reason why a platform without authentication does not start at this address; null if it may start. Any
 * program that reaches such a platform can run code on this machine.
 */
export function refusedExposure({
  host,
  open,
  insecure,
}: Pick<UpOptions, "host" | "open" | "insecure">): string | null {
  if (!open || insecure || isLoopbackName(host)) return null;
  return (
    `without authentication, anyone who reaches ${host} could run code on this machine: ` +
    "remove --open, or use --insecure to allow it"
  );
}
