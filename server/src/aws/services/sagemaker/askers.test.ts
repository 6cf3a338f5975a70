import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease } from "../../../base/index.ts";
import { askerOf } from "./askers.ts";

/** What the programs sent when they were looked at, shortened. */
const programs: readonly (readonly [string, boolean, number, number, boolean])[] = [
  ["Boto3/1.44.5 md/Botocore#1.44.5 lang/python#3.11.7 m/Z,e,E,B,b,N cfg/retry-mode#standard", true, 600, 50, true],
  ["aws-cli/1.46.3 md/Botocore#1.43.62 m/D,g,Z,N,b,B botocore/1.43.62", true, 600, 50, true],
  [
    "Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,b Botocore/1.44.5 lib/AWS-SageMaker-Python-SDK#2.257.1",
    true,
    600,
    50,
    true,
  ],
  ["Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,b Botocore/1.44.5 lib/AWS-SageMakerCore#2.0.0", true, 600, 50, true],
  ["Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,b,N Botocore/1.44.5", false, 10, 10, true],
  ["aws-cli/1.46.3 md/Botocore#1.43.62 m/D,g,Z,N,b botocore/1.43.62", false, 10, 10, true],
  ["aws-sdk-js/3.1141.0 ua/2.1 lang/js md/nodejs#24.21.0 api/sagemaker#3.1141.0 m/N,E,e", false, 600, 50, true],
  ["aws-sdk-js/3.1141.0 ua/2.1 lang/js md/browser#Firefox_140.0 api/sagemaker#3.1141.0 m/N,E,e", false, 600, 50, false],
  ["Boto3/1.26.0 Python/3.11 Linux/6 Botocore/1.29.0", false, 600, 50, true],
  ["aws-sdk-java/2.30.1 lang/java#17", false, 600, 25, false],
  ["aws-sdk-java/2.29.20 md/io#sync md/http#Apache ua/2.1 lang/java#17.0.15 m/D,N,B", true, 600, 25, true],
  ["aws-sdk-java/2.29.20 md/io#sync md/http#UrlConnection ua/2.1 lang/java#17.0.15 m/D,N", false, 600, 25, true],
  ["aws-sdk-java/2.29.20 md/io#async md/http#NettyNio ua/2.1 lang/java#17.0.15 m/D,N,B", true, 600, 25, false],
  [
    "aws-sdk-go-v2/1.36.0 ua/2.1 os/linux lang/go#1.26.8 md/GOOS#linux api/sagemaker#1.286.1 m/B,E",
    true,
    600,
    25,
    true,
  ],
  ["aws-sdk-go-v2/1.36.0 ua/2.1 os/linux lang/go#1.22.1 md/GOOS#linux api/sagemaker#1.163.0", false, 600, 25, false],
  ["aiobotocore/3.10.0 md/Botocore#1.43.117 ua/2.1 m/D,N,b,B,e,Z botocore/1.43.117", true, 600, 50, true],
  ["curl/8.5.0", false, 120, 25, false],
  ["", false, 120, 25, false],
];
const awake = () => ({ [Symbol.dispose]() {} });

for (const [userAgent, isWaiter, awakeSeconds, quietSeconds, readsInterims] of programs) {
  test(`who calls itself ${JSON.stringify(userAgent)} waits for ${awakeSeconds} s`, () => {
    const asker = askerOf({
      requestId: "r",
      region: "us-east-1",
      accountId: "111122223333",
      accessKeyId: "key",
      program: { userAgent, connection: { destroyed: false } },
      stayAwake: { blanks: null, interims: awake },
      signal: new AbortController().signal,
      memory: new ByteLease(new ByteBudget(1)),
      turn: () => Promise.resolve(),
    });
    const { isWaiter: waits, awakeMsMax, quietMsMax, stayAwake } = asker;
    assert.deepEqual([waits, awakeMsMax, quietMsMax], [isWaiter, awakeSeconds * 1000, quietSeconds * 1000]);
    assert.equal(stayAwake.interims !== null, readsInterims);
  });
}
