import type { Asker } from "../../../hosting/index.ts";
import type { CallContext } from "../../wire/index.ts";

type Patience = Pick<Asker, "isWaiter" | "awakeMsMax" | "quietMsMax">;

/** Below the 30 s after which the most impatient of the SDKs (Java's) gives up reading. */
const quietMsMax = 25_000;
/** Below the 60 s of botocore; the JavaScript SDK reads for as long as it takes. */
const longQuietMsMax = 50_000;

/** By what programs call themselves: the first row that fits. */
const patiences: readonly { readonly fits: (userAgent: string) => boolean; readonly patience: Patience }[] = [
  // Waiters of boto3 and the AWS CLI.
  {
    fits: (userAgent) => namesWaiter(userAgent),
    patience: { isWaiter: true, awakeMsMax: 600_000, quietMsMax: longQuietMsMax },
  },
  // Their own loops are boto3's plain questions, every 30 s in the second SDK, every 5 s in the third, which may have a time limit.
  {
    fits: (userAgent) => /\bAWS-SageMaker(?:-Python-SDK|Core)\b/.test(userAgent),
    patience: { isWaiter: true, awakeMsMax: 120_000, quietMsMax: longQuietMsMax },
  },
  // No waiter, or it would say so: somebody who wants to see how it is.
  {
    fits: (userAgent) => /\bbotocore\b/i.test(userAgent) && featuresOf(userAgent) !== null,
    patience: { isWaiter: false, awakeMsMax: 10_000, quietMsMax: 10_000 },
  },
  // Its waiters do not say so.
  {
    fits: (userAgent) => userAgent.startsWith("aws-sdk-js/"),
    patience: { isWaiter: false, awakeMsMax: 120_000, quietMsMax: longQuietMsMax },
  },
];
const patienceOfOthers: Patience = { isWaiter: false, awakeMsMax: 120_000, quietMsMax };

/** The caller of a Describe operation as somebody who may wait for a state. */
export function askerOf({ accessKeyId, program, stayAwake, signal }: CallContext): Asker {
  const { userAgent, connection } = program;
  const { patience } = patiences.find(({ fits }) => fits(userAgent)) ?? { patience: patienceOfOthers };
  return { ...patience, name: `${accessKeyId ?? ""} ${userAgent.slice(0, 256)}`, connection, stayAwake, signal };
}

const namesWaiter = (userAgent: string) => featuresOf(userAgent)?.includes("B") ?? false;

/** botocore lists what of it a request comes from: `m/Z,B`, where B is a waiter. Null for versions before that. */
function featuresOf(userAgent: string): readonly string[] | null {
  const features = userAgent.split(" ").find((word) => word.startsWith("m/"));
  return features === undefined ? null : features.slice(2).split(",");
}
