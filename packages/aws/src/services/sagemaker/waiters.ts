import type { WaitLimits } from "@galatea/hosting";
import type { CallContext } from "../../wire/index.ts";

/** Maximum delay: less than the read time-out of the AWS SDK for Java, at 30 s the shortest of the SDKs. */
const waiterMsMax = 20_000;

/**
 * Delays a Describe call of an SDK's waiter until `settled` resolves, for at most 20 s, because the waiter would otherwise sleep for 30 s
 * before its next call. Returns at once for every other caller.
 */
export async function delayWaiter(
  { userAgent, signal }: Pick<CallContext, "userAgent" | "signal">,
  settled: (wait: WaitLimits) => Promise<void>,
): Promise<void> {
  if (isWaiter(userAgent)) await settled({ waitMsMax: waiterMsMax, signal });
}

/** Returns whether the features that an SDK lists, as in `m/Z,B`, include `B`, which means WAITER. */
function isWaiter(userAgent: string): boolean {
  const features = userAgent.split(" ").find((word) => word.startsWith("m/"));
  return features?.slice("m/".length).split(",").includes("B") ?? false;
}
