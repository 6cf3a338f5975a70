import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError } from "@galatea/base";
import { outcomeOfError, outcomeReport, type InvocationOutcome } from "./invocation-outcome.ts";
import { containerError, payloadTooLarge } from "./invocation-errors.ts";

const rows: readonly (readonly [InvocationOutcome, string])[] = [
  [{ kind: "succeeded" }, "200: "],
  [{ kind: "model-error", status: 304 }, "424: model"],
  [{ kind: "model-error", status: 404 }, "424: 4XX model"],
  [{ kind: "model-error", status: 503 }, "424: 5XX model"],
  [{ kind: "timed-out" }, "424: 5XX model"],
  [{ kind: "response-too-long" }, "413: 4XX model"],
  [{ kind: "stream-failed" }, "200: model stream"],
  [{ kind: "refused", status: 429 }, "429: 4XX"],
  [{ kind: "refused", status: 503 }, "503: 5XX"],
  [{ kind: "cancelled" }, "null: "],
];

for (const [outcome, expected] of rows) {
  test(`the outcome ${JSON.stringify(outcome)} is sent and counted as ${expected}`, () => {
    const report = outcomeReport(outcome);
    const counted = [
      report.Invocation4XXErrors === 1 ? "4XX" : "",
      report.Invocation5XXErrors === 1 ? "5XX" : "",
      report.InvocationModelErrors === 1 ? "model" : "",
      report.MidStreamErrors === 1 ? "stream" : "",
    ];
    assert.equal(`${report.sentStatus}: ${counted.filter((name) => name !== "").join(" ")}`, expected);
    assert.equal(report.Invocations, 1);
  });
}

test("an invocation that was not sent and goes to another instance is not counted", () => {
  assert.equal(outcomeReport({ kind: "not-sent" }).Invocations, 0);
});

test("an error's outcome follows the container's status, or the platform's if no container responded", () => {
  const location = {
    containerName: "c",
    logGroup: "g",
    accountId: "",
    region: "",
    logStreamArn: "",
    logsLink: () => "",
  };
  const request = { isCancelled: false, hasResponse: false };
  const full = new AwsError("ServiceUnavailable", "full", { statusFallback: 503 });
  assert.deepEqual(outcomeOfError(containerError(418, "no", location), request), { kind: "model-error", status: 418 });
  assert.deepEqual(outcomeOfError(containerError(0, "late", location), request), { kind: "timed-out" });
  assert.deepEqual(outcomeOfError(full, request), { kind: "refused", status: 503 });
  assert.deepEqual(outcomeOfError(payloadTooLarge(1), request), { kind: "refused", status: 413 });
  assert.deepEqual(outcomeOfError(payloadTooLarge(1), { ...request, hasResponse: true }), {
    kind: "response-too-long",
  });
  assert.deepEqual(outcomeOfError(new AwsError("ModelStreamError", ""), request), { kind: "stream-failed" });
  assert.deepEqual(outcomeOfError(new TypeError("bug"), request), { kind: "refused", status: 500 });
  assert.deepEqual(outcomeOfError(full, { ...request, isCancelled: true }), { kind: "cancelled" });
});
