import type { Asker } from "../../../hosting/index.ts";
import type { CallContext } from "../../wire/index.ts";

interface Patience extends Pick<Asker, "isWaiter" | "awakeMsMax" | "quietMsMax"> {
  /** Whether any number of interim responses may come before its answer. undici's fetch, Java's Netty client and Go before 1.23 fail. */
  readonly readsInterims: boolean;
}

/** Below the 60 s of botocore. */
const botocoreMsMax = 50_000;
/** Below the 30 s after which the most impatient of the SDKs (Java's) gives up reading. */
const quietMsMax = 25_000;
/** A waiter whose own time is up before this learns of it late. */
const longestMs = 600_000;

/** By what programs call themselves: the first row that fits. */
const patiences: readonly { readonly fits: (userAgent: string) => boolean; readonly patience: Patience }[] = [
  // Waiters of boto3 and the AWS CLI, and the Python SDKs' own loops, which are boto3's plain questions every 30 or 5 s.
  {
    fits: (userAgent) => namesWaiter(userAgent) || /\bAWS-SageMaker(?:-Python-SDK|Core)\b/.test(userAgent),
    patience: { isWaiter: true, awakeMsMax: longestMs, quietMsMax: botocoreMsMax, readsInterims: true },
  },
  // No waiter, or it would say so: somebody who wants to see how it is.
  {
    fits: (userAgent) => isBotocore(userAgent) && featuresOf(userAgent) !== null,
    patience: { isWaiter: false, awakeMsMax: 10_000, quietMsMax: 10_000, readsInterims: true },
  },
  // The waiters of these do not say so.
  {
    fits: (userAgent) => isBotocore(userAgent),
    patience: { isWaiter: false, awakeMsMax: longestMs, quietMsMax: botocoreMsMax, readsInterims: true },
  },
  {
    fits: (userAgent) => /^aws-sdk-js\/.* md\/nodejs#/.test(userAgent),
    patience: { isWaiter: false, awakeMsMax: longestMs, quietMsMax: botocoreMsMax, readsInterims: true },
  },
  {
    fits: (userAgent) => userAgent.startsWith("aws-sdk-"),
    patience: { isWaiter: false, awakeMsMax: longestMs, quietMsMax, readsInterims: false },
  },
];
const patienceOfOthers: Patience = { isWaiter: false, awakeMsMax: 120_000, quietMsMax, readsInterims: false };

/** The caller of a Describe operation as somebody who may wait for a state. */
export function askerOf({ accessKeyId, program, stayAwake, signal }: CallContext): Asker {
  const { userAgent, connection } = program;
  const { patience } = patiences.find(({ fits }) => fits(userAgent)) ?? { patience: patienceOfOthers };
  const { readsInterims, ...waiting } = patience;
  return {
    ...waiting,
    name: `${accessKeyId ?? ""} ${userAgent.slice(0, 256)}`,
    connection,
    stayAwake: { ...stayAwake, interims: readsInterims ? stayAwake.interims : null },
    signal,
  };
}

const isBotocore = (userAgent: string) => /\bbotocore\b/i.test(userAgent);
const namesWaiter = (userAgent: string) => featuresOf(userAgent)?.includes("B") ?? false;

/** botocore lists what of it a request comes from: `m/Z,B`, where B is a waiter. Null for versions before that. */
function featuresOf(userAgent: string): readonly string[] | null {
  const features = userAgent.split(" ").find((word) => word.startsWith("m/"));
  return features === undefined ? null : features.slice(2).split(",");
}
