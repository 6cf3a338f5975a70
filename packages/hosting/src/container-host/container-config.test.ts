import assert from "node:assert/strict";
import { test } from "node:test";
import type { ImageSlot } from "../process-host/index.ts";
import { containerConfig, type EngineNetwork } from "./container-config.ts";

const slot: ImageSlot = {
  id: "i-1-2",
  instanceId: "i-1",
  image: "churn:3",
  spec: {
    title: "churn/all/i-1",
    runtime: { image: "churn:3" },
    models: { kind: "one", container: {}, bringMsMax: 1 },
    environment: { AWS_ENDPOINT_URL: "http://127.0.0.1:8770", MINE: "1", SAGEMAKER_BIND_TO_PORT: "9" },
    modelMemoryBytes: 2 ** 30,
    concurrencyMax: null,
    output: () => {},
  },
  specDigest: "abc",
  budget: { vcpuCount: 8, memoryBytes: 2 ** 31, acceleratorCount: 4 },
  mlRoot: "/data/i-1-2/ml",
  directory: "/data/i-1-2",
  isDetached: () => false,
};
const network: EngineNetwork = { name: "galatea-1", gateway: "172.18.0.1", isInternal: true };
const surroundings = { platform: "/data", network, cpuCount: 2, gpuCount: 0 };

test("a container gets SageMaker's command, read-only models, its memory without swap, and no capability that it does not need", () => {
  const { Cmd, Env, Labels, HostConfig } = containerConfig(slot, surroundings);
  assert.deepEqual(Cmd, ["serve"]);
  assert.deepEqual(Env, ["AWS_ENDPOINT_URL=http://172.18.0.1:8770", "MINE=1", "SAGEMAKER_BIND_TO_PORT=8080"]);
  assert.deepEqual(Labels, {
    "galatea.platform": "/data",
    "galatea.instance": "i-1",
    "galatea.slot": "i-1-2",
    "galatea.spec": "abc",
    "galatea.title": "churn/all/i-1",
  });
  const { Mounts, Memory, MemorySwap, NanoCpus, CapDrop, CapAdd, SecurityOpt, NetworkMode } = HostConfig;
  const mount = { Type: "bind", Source: "/data/i-1-2/ml/model", Target: "/opt/ml/model", ReadOnly: true };
  assert.deepEqual(Mounts, [mount]);
  assert.deepEqual([Memory, MemorySwap], [2 ** 30, 2 ** 30]);
  assert.equal(NanoCpus, 2e9, "not more than the machine has");
  assert.deepEqual([CapDrop, CapAdd.includes("NET_RAW"), SecurityOpt], [["ALL"], false, ["no-new-privileges"]]);
  assert.equal(NetworkMode, "galatea-1");
  assert.equal("PortBindings" in HostConfig || "DeviceRequests" in HostConfig, false);
});

test("many models are another directory", () => {
  const spec = { ...slot.spec, models: { kind: "many", modelDataUrl: "s3://b/" } as const };
  const [mount] = containerConfig({ ...slot, spec }, surroundings).HostConfig.Mounts;
  assert.deepEqual([mount?.Source, mount?.Target], ["/data/i-1-2/ml/models", "/opt/ml/models"]);
});

test("in a network that reaches others, the port is published on the loopback address", () => {
  const { HostConfig } = containerConfig(slot, { ...surroundings, network: { ...network, isInternal: false } });
  assert.deepEqual(HostConfig.PortBindings, { "8080/tcp": [{ HostIp: "127.0.0.1", HostPort: "" }] });
});

test("GPUs are those of the instance type, as far as the machine has them", () => {
  const { HostConfig } = containerConfig(slot, { ...surroundings, gpuCount: 2 });
  assert.deepEqual(HostConfig.DeviceRequests, [{ Count: 2, Capabilities: [["gpu"]] }]);
});

test("a model's own AWS_ENDPOINT_URL of another host stays, and so does one in a network without a gateway", () => {
  const urlIn = (url: string, gateway: string | null) => {
    const spec = { ...slot.spec, environment: { AWS_ENDPOINT_URL: url } };
    return containerConfig({ ...slot, spec }, { ...surroundings, network: { ...network, gateway } }).Env[0];
  };
  assert.equal(urlIn("http://localhost:1", "10.0.0.1"), "AWS_ENDPOINT_URL=http://10.0.0.1:1");
  assert.equal(urlIn("http://[::1]:1", "10.0.0.1"), "AWS_ENDPOINT_URL=http://10.0.0.1:1");
  assert.equal(urlIn("http://localhost.example:1", "10.0.0.1"), "AWS_ENDPOINT_URL=http://localhost.example:1");
  assert.equal(urlIn("http://127.0.0.1:1", null), "AWS_ENDPOINT_URL=http://127.0.0.1:1");
});
