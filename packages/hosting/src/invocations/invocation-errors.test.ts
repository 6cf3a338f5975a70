import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError } from "@galatea/base";
import { ModelNotReadyError } from "../instance-agent/index.ts";
import { toModelError } from "./invocation-errors.ts";

test("the error for a model that is not ready says that it is being loaded and what the load waits for", () => {
  const location = {
    containerName: "primary",
    logGroup: "/aws/sagemaker/Endpoints/e",
    accountId: "000000000000",
    region: "us-east-1",
    logsLink: (group: string) => group,
    logStreamArn: "",
  };
  const reported = toModelError(new ModelNotReadyError("it waits for memory"), "s3://b/models/", location);
  assert.ok(reported instanceof AwsError);
  assert.deepEqual([reported.code, reported.statusFallback], ["ModelNotReadyException", 429]);
  assert.equal(
    reported.message,
    "The model is not ready for inference: it is being loaded (it waits for memory). Loading continues; send the request again.",
  );
});
