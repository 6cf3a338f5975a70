import assert from "node:assert/strict";
import { test } from "node:test";
import { delayWaiter } from "./waiters.ts";

/**
 * Shortened User-Agent headers of SDKs, and for each the maximum delay of its Describe calls in milliseconds; null: no
 * delay.
 */
const callers: readonly (readonly [userAgent: string, heldMsMax: number | null])[] = [
  ["Boto3/1.44.5 md/Botocore#1.44.5 lang/python#3.11.7 m/Z,e,E,B,b,N cfg/retry-mode#standard", 20_000],
  ["aws-cli/1.46.3 md/Botocore#1.43.62 m/D,g,Z,N,b,B botocore/1.43.62", 20_000],
  ["aws-sdk-java/2.29.20 md/io#sync md/http#Apache ua/2.1 lang/java#17.0.15 m/D,N,B", 20_000],
  ["aws-sdk-go-v2/1.36.0 ua/2.1 os/linux lang/go#1.26.8 api/sagemaker#1.286.1 m/B,E", 20_000],
  ["Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,b,N Botocore/1.44.5", null],
  ["Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,b Botocore/1.44.5 lib/AWS-SageMaker-Python-SDK#2.257.1", null],
  ["aws-sdk-js/3.1141.0 ua/2.1 lang/js md/nodejs#24.21.0 api/sagemaker#3.1141.0 m/N,E,e", null],
  ["Boto3/1.26.0 Python/3.11 Linux/6 Botocore/1.29.0", null],
  ["curl/8.5.0", null],
  ["", null],
];

for (const [userAgent, heldMsMax] of callers) {
  test(`a Describe call of ${JSON.stringify(userAgent)} is delayed by at most ${heldMsMax ?? 0} ms`, async () => {
    const { signal } = new AbortController();
    let wait: object | null = null;
    await delayWaiter({ userAgent, signal }, (input) => {
      wait = input;
      return Promise.resolve();
    });
    assert.deepEqual(wait, heldMsMax === null ? null : { waitMsMax: heldMsMax, signal });
  });
}
