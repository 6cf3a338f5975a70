import type { WaitLimits } from "@galatea/hosting";
import type { CallContext } from "../../wire/index.ts";

/** Maximum delay in milliseconds. Must be less than the read time-out of every AWS SDK; the shortest is 30 s (Java). */
const waiterMsMax = 20_000;

/**
 * Delays a Describe call of an SDK's waiter until `settled` resolves, for at most 20 s. Without the delay, the waiter
 * sleeps for 30 s before its next call. Returns at once for every other caller.
 */
export async function delayWaiter(
  { userAgent, signal }: Pick<CallContext, "userAgent" | "signal">,
  settled: (wait: WaitLimits) => Promise<void>,
): Promise<void> {
  if (isWaiter(userAgent)) await settled({ waitMsMax: waiterMsMax, signal });
}

/** Returns whether the User-Agent lists the feature `B` (WAITER), as in `m/Z,B`. */
function isWaiter(userAgent: string): boolean {
  const features = userAgent.split(" ").find((word) => word.startsWith("m/"));
  return features?.slice("m/".length).split(",").includes("B") ?? false;
}
