import type { Asker } from "../../../hosting/index.ts";
import type { CallContext } from "../../wire/index.ts";

type Patience = Pick<Asker, "isWaiter" | "awakeMsMax" | "quietMsMax">;

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
    fits: (userAgent) => (isBotocore(userAgent) && namesWaiter(userAgent)) || isPythonSdk(userAgent),
    patience: { isWaiter: true, awakeMsMax: longestMs, quietMsMax: botocoreMsMax },
  },
  // Those of the SDKs for Java and Go.
  {
    fits: namesWaiter,
    patience: { isWaiter: true, awakeMsMax: longestMs, quietMsMax },
  },
  // No waiter, or it would say so: somebody who wants to see how it is.
  {
    fits: (userAgent) => isBotocore(userAgent) && featuresOf(userAgent) !== null,
    patience: { isWaiter: false, awakeMsMax: 10_000, quietMsMax: 10_000 },
  },
  // The waiters of these do not say so.
  {
    fits: (userAgent) => isBotocore(userAgent) || userAgent.startsWith("aws-sdk-js/"),
    patience: { isWaiter: false, awakeMsMax: longestMs, quietMsMax: botocoreMsMax },
  },
  {
    fits: (userAgent) => userAgent.startsWith("aws-sdk-"),
    patience: { isWaiter: false, awakeMsMax: longestMs, quietMsMax },
  },
];
const patienceOfOthers: Patience = { isWaiter: false, awakeMsMax: 120_000, quietMsMax };

/**
 * Programs that read on behind any number of interim responses: whoever is not here might not. Java's Netty client and undici's fetch take
 * the first for the answer, and older versions of Go's net/http give up at the sixth.
 */
const interimReaders: readonly ((userAgent: string) => boolean)[] = [
  isBotocore,
  (userAgent) => /^aws-sdk-js\/.* md\/nodejs#/.test(userAgent),
  (userAgent) => /^aws-sdk-java\/2.* md\/http#(?:Apache|UrlConnection) /.test(userAgent),
  (userAgent) => /^aws-sdk-go-v2\/.* lang\/go#1\.(?:2[6-9]|[3-9]\d)\b/.test(userAgent),
];

/** The caller of a Describe operation as somebody who may wait for a state. */
export function askerOf({ accessKeyId, program, stayAwake, signal }: CallContext): Asker {
  const { userAgent, connection } = program;
  const { patience } = patiences.find(({ fits }) => fits(userAgent)) ?? { patience: patienceOfOthers };
  const readsInterims = interimReaders.some((fits) => fits(userAgent));
  return {
    ...patience,
    printsLogs: isPythonSdk(userAgent),
    name: `${accessKeyId ?? ""} ${userAgent.slice(0, 256)}`,
    connection,
    stayAwake: { ...stayAwake, interims: readsInterims ? stayAwake.interims : null },
    signal,
  };
}

function isBotocore(userAgent: string): boolean {
  return /\bbotocore\b/i.test(userAgent);
}

function isPythonSdk(userAgent: string): boolean {
  return /\bAWS-SageMaker(?:-Python-SDK|Core)\b/.test(userAgent);
}

function namesWaiter(userAgent: string): boolean {
  return featuresOf(userAgent)?.includes("B") ?? false;
}

/** SDKs list what of them a request comes from: `m/Z,B`, where B is a waiter. Null for versions before that. */
function featuresOf(userAgent: string): readonly string[] | null {
  const features = userAgent.split(" ").find((word) => word.startsWith("m/"));
  return features === undefined ? null : features.slice(2).split(",");
}
