import assert from "node:assert/strict";
import { test } from "node:test";
import { hostingArn, parseHostingArn } from "../src/definitions/arns.ts";
import { resolveImage, unsupportedImageText } from "../src/definitions/image-names.ts";
import { instanceTypeSize } from "../src/definitions/instance-types.ts";
import { instanceTypeBudget, localNode } from "../src/nodes/index.ts";
import { chooseRandom, chooseLeastBusy } from "../src/endpoints/routing.ts";
import { parseS3Uri } from "../src/definitions/s3-uri.ts";

const gibi = 2 ** 30;

test("the least busy instance is chosen, equals with equal probability; RANDOM chooses each with equal probability", () => {
  const instances = [
    { id: "a", inFlightCount: 1 },
    { id: "b", inFlightCount: 2 },
    { id: "c", inFlightCount: 1 },
  ];
  const chances = [0, 0.3, 0.34, 0.66, 0.67, 0.99];
  const ids = (choose: typeof chooseLeastBusy<(typeof instances)[number]>) =>
    chances.map((chance) => choose(instances, chance)?.id).join("");
  assert.equal(ids(chooseLeastBusy), "aacccc");
  assert.equal(ids(chooseRandom), "aabbcc");
  assert.equal(chooseLeastBusy([], 0.5), null);
  assert.equal(chooseRandom([], 0.5), null);
});

test("instance types have their published sizes, clipped to the node", () => {
  assert.deepEqual(instanceTypeSize("ml.g4dn.4xlarge"), { vcpuCount: 16, memoryBytes: 64 * gibi });
  assert.deepEqual(instanceTypeSize("ml.m5.large"), { vcpuCount: 2, memoryBytes: 8 * gibi });
  assert.deepEqual(instanceTypeSize("ml.c5.18xlarge"), { vcpuCount: 72, memoryBytes: 144 * gibi });
  assert.deepEqual(instanceTypeSize("ml.t2.medium"), { vcpuCount: 2, memoryBytes: 4 * gibi });
  assert.deepEqual(instanceTypeSize("ml.p4d.24xlarge"), { vcpuCount: 96, memoryBytes: 1152 * gibi });
  assert.equal(instanceTypeSize("ml.z9.large"), null);
  const node = localNode({ vcpuCount: 4, memoryBytes: 9 * gibi, gpuCount: 1, diskBytes: 100 * gibi });
  const shared = { acceleratorCount: 1, diskBytes: 100 * gibi };
  assert.deepEqual(instanceTypeBudget("ml.m5.large", node), { vcpuCount: 2, memoryBytes: 8 * gibi, ...shared });
  assert.deepEqual(instanceTypeBudget("ml.g5.48xlarge", node), { vcpuCount: 4, memoryBytes: 9 * gibi, ...shared });
  assert.deepEqual(instanceTypeBudget("ml.z9.large", node), { vcpuCount: 4, memoryBytes: 9 * gibi, ...shared });
});

test("images of any account, region and tag are recognised by their repository; others are unknown", () => {
  const registry = "785573368785.dkr.ecr.us-east-1.amazonaws.com";
  for (const image of [
    `${registry}/sagemaker-tritonserver:23.03-py3`,
    `${registry}.cn/sagemaker-tritonserver-cpu:1`,
    `${registry}/sagemaker-tritonserver@sha256:${"0".repeat(64)}`,
    "sagemaker-tritonserver",
  ]) {
    assert.equal(resolveImage(image), "tritonserver", image);
  }
  assert.equal(resolveImage(`${registry}/sagemaker-scikit-learn:1.2-1-cpu-py3`), "scikit-learn");
  assert.equal(resolveImage(`${registry}/pytorch-inference:2.6.0-cpu-py312-ubuntu22.04-sagemaker`), "pytorch");
  for (const image of [`${registry}/mine:1.7-1`, "sagemaker-tritonserver/mine:1", "my-pytorch-inference:1"])
    assert.equal(resolveImage(image), null);
  assert.equal(resolveImage(`${registry}/tensorflow-inference:2.19-cpu`), "tensorflow-serving");
  assert.equal(resolveImage(`${registry}/sagemaker-tensorflow-serving:1.12-cpu`), "tensorflow-serving");
  assert.equal(resolveImage(`${registry}/tensorflow-training:2.19-cpu-py312`), null);
  assert.equal(resolveImage("382416733822.dkr.ecr.us-east-1.amazonaws.com/linear-learner:1"), "linear-learner");
  for (const image of [`${registry}/sagemaker-xgboost:1.7-1`, "811284229777.dkr.ecr.us-east-1.amazonaws.com/xgboost:1"])
    assert.equal(resolveImage(image), "xgboost");
  assert.equal(resolveImage(`${registry}/sagemaker-sparkml-serving:3.3`), "sparkml-serving");
  assert.match(
    unsupportedImageText("mine:1"),
    /The image mine:1 cannot be run here.*sagemaker-scikit-learn.*install Docker or Podman.*--container-engine=unix:/,
  );
});

test("S3 URIs and ARNs are parsed and formatted", () => {
  const owner = { region: "us-east-1", accountId: "000000000000" };
  const arn = hostingArn("endpoint-config", "My-Config", owner);
  assert.equal(arn, "arn:aws:sagemaker:us-east-1:000000000000:endpoint-config/my-config");
  assert.deepEqual(parseHostingArn(arn), { resource: "endpoint-config", key: "my-config" });
  assert.equal(parseHostingArn("arn:aws:s3:::bucket"), null);
  assert.deepEqual(parseS3Uri("s3://bucket/a/b c.tar.gz"), { bucket: "bucket", key: "a/b c.tar.gz" });
  assert.deepEqual(parseS3Uri("https://bucket.s3.us-east-1.amazonaws.com/a%20b"), { bucket: "bucket", key: "a b" });
  assert.deepEqual(parseS3Uri("https://localhost:8770/bucket/a"), { bucket: "bucket", key: "a" });
  assert.equal(parseS3Uri("/etc/passwd"), null);
});
