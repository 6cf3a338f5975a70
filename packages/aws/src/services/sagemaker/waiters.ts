import type { Wait } from "@galatea/hosting";
import type { CallContext } from "../../wire/index.ts";

/** Less than the 30 s after which the AWS SDK for Java stops reading, the earliest of the SDKs. */
const waiterMsMax = 20_000;

/**
 * Holds a Describe call of an SDK's waiter until `settled` resolves, for 20 s at most: the waiter itself would sleep for half a minute before
 * its next call. Returns at once for every other caller.
 */
export async function delayWaiter(
  { userAgent, signal }: Pick<CallContext, "userAgent" | "signal">,
  settled: (wait: Wait) => Promise<void>,
): Promise<void> {
  if (isWaiter(userAgent)) await settled({ waitMsMax: waiterMsMax, signal });
}

/** SDKs list the features that made a call, as in `m/Z,B`. `B` is WAITER. */
function isWaiter(userAgent: string): boolean {
  const features = userAgent.split(" ").find((word) => word.startsWith("m/"));
  return features?.slice("m/".length).split(",").includes("B") ?? false;
}
