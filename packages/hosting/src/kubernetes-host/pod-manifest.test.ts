import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentInstanceSpec } from "../instance-agent/index.ts";
import { clusterNode, unknownTypeText } from "./cluster-node.ts";
import {
  disruptionBudgetManifest,
  podHash,
  podManifest,
  podName,
  secretManifest,
  type PodSettings,
} from "./pod-manifest.ts";
import { parseQuantity } from "./quantity.ts";

const settings: PodSettings = {
  namespace: "models",
  platform: "galatea",
  image: "registry.example/galatea:1",
  pullPolicy: "IfNotPresent",
  pullSecrets: ["registry"],
  agentArguments: ["agent", "--listen=0.0.0.0:8780"],
  environment: [{ name: "HTTPS_PROXY", value: "http://proxy" }],
  owner: { apiVersion: "apps/v1", kind: "StatefulSet", name: "galatea", uid: "u" },
  types: {
    "ml.g5.xlarge": { nodeSelector: { pool: "gpu" }, tolerations: [{ key: "gpu", operator: "Exists" }] },
  },
  priorityClass: "models",
  graceSeconds: 90,
};

const spec = {
  id: "i-1",
  owner: { endpointName: "Add-Sub", fleetKey: "1 v", ordinal: 0 },
  instanceType: "ml.g5.xlarge",
  budget: { vcpuCount: 0.5, memoryBytes: 2 ** 30, acceleratorCount: 1, diskBytes: 2 ** 31 },
} as unknown as AgentInstanceSpec;

const environment = { AWS_ACCESS_KEY_ID: "id" };

interface Manifest {
  readonly metadata: {
    readonly name: string;
    readonly labels: Record<string, string>;
    readonly annotations: Record<string, string>;
  };
  readonly data: Record<string, string>;
  readonly spec: Record<string, unknown> & {
    readonly containers: readonly (Record<string, unknown> & {
      readonly env: readonly { readonly name: string }[];
      readonly resources: { readonly requests: object; readonly limits: object };
    })[];
    readonly topologySpreadConstraints: readonly object[];
    readonly tolerations: readonly { readonly key: string; readonly tolerationSeconds?: number }[];
  };
}

const manifestOf = (of = spec) => podManifest("pod-1", of, { environment }, settings) as Manifest;

test("a pod requests what its instance may use, and what its agent needs", () => {
  const [container] = manifestOf().spec.containers;
  const bounded = { memory: String(2 ** 30 + 2 ** 28), "ephemeral-storage": String(2 ** 31), "nvidia.com/gpu": "1" };
  assert.deepEqual(container?.resources, { requests: { cpu: "500m", ...bounded }, limits: bounded });
});

test("a pod runs without privileges, service account token and writable root file system", () => {
  const { spec: pod } = manifestOf();
  assert.equal(pod["automountServiceAccountToken"], false);
  assert.equal((pod["securityContext"] as { runAsNonRoot: boolean }).runAsNonRoot, true);
  assert.deepEqual(pod.containers[0]?.["securityContext"], {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
});

test("the row of an instance type decides over nodes, and a lost node is left after 5 s", () => {
  const { spec: pod } = manifestOf();
  assert.deepEqual(pod["nodeSelector"], { pool: "gpu" });
  assert.deepEqual(
    pod.tolerations.map(({ key, tolerationSeconds }) => [key, tolerationSeconds]),
    [
      ["node.kubernetes.io/not-ready", 5],
      ["node.kubernetes.io/unreachable", 5],
      ["gpu", undefined],
    ],
  );
});

test("instances of one fleet spread over nodes, without those of earlier generations; a job's pod does not", () => {
  const { spec: pod } = manifestOf();
  assert.deepEqual(pod.topologySpreadConstraints, [
    {
      maxSkew: 1,
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: { matchLabels: { "galatea/endpoint": "Add-Sub" } },
      matchLabelKeys: ["galatea/fleet"],
    },
  ]);
  assert.deepEqual(manifestOf({ ...spec, owner: null }).spec.topologySpreadConstraints, []);
});

test("keys are in the pod's Secret, and the pod only names them", () => {
  const certificate = { certificatePem: "agent", keyPem: "key" };
  const secret = secretManifest(
    "pod-1",
    spec,
    { certificate, platformPem: "platform", environment },
    settings,
  ) as Manifest;
  const decoded = Object.entries(secret.data).map(([name, text]) => [name, Buffer.from(text, "base64").toString()]);
  assert.deepEqual(Object.fromEntries(decoded), {
    "tls.crt": "agent",
    "tls.key": "key",
    "ca.crt": "platform",
    AWS_ACCESS_KEY_ID: "id",
  });
  const [container] = manifestOf().spec.containers;
  assert.deepEqual(container?.env[1], {
    name: "AWS_ACCESS_KEY_ID",
    valueFrom: { secretKeyRef: { name: "pod-1", key: "AWS_ACCESS_KEY_ID" } },
  });
});

test("a budget selects the pods of one fleet, and lets one of them be evicted", () => {
  const { labels } = manifestOf().metadata;
  const { ["galatea/instance"]: _instance, ...fleet } = labels;
  const { owner } = spec;
  assert.ok(owner !== null);
  const budget = (count: number) => (disruptionBudgetManifest("b", owner, count, settings) as { spec: object }).spec;
  const rest = { selector: { matchLabels: fleet }, unhealthyPodEvictionPolicy: "AlwaysAllow" };
  assert.deepEqual(budget(3), { minAvailable: 2, ...rest });
  assert.deepEqual(budget(1), { minAvailable: 0, ...rest });
});

test("the platform finds an instance's pod again by its owner, and sees that another spec is wanted", () => {
  const { annotations, labels } = manifestOf().metadata;
  assert.deepEqual(JSON.parse(annotations["galatea/owner"] ?? ""), spec.owner);
  assert.equal(labels["galatea/instance"], "i-1");
  assert.equal(annotations["galatea/spec"], podHash(spec, { environment }, settings));
  const hashes = [
    podHash(spec, { environment }, settings),
    podHash({ ...spec, reservedBytes: 1 }, { environment }, settings),
    podHash(spec, { environment }, { ...settings, image: "registry.example/galatea:2" }),
    podHash(spec, { environment }, { ...settings, types: {} }),
  ];
  assert.equal(new Set(hashes).size, 4);
  assert.equal(podHash(spec, { environment }, { ...settings, owner: null }), hashes[0]);
  assert.equal("galatea/owner" in manifestOf({ ...spec, owner: null }).metadata.annotations, false);
});

test("names of pods are host names of at most 63 characters", () => {
  assert.equal(podName(spec, "a1"), "add-sub-i-1-a1");
  const owner = { endpointName: "E".repeat(63), fleetKey: "1 v", ordinal: 0 };
  const long = podName({ ...spec, id: `i-${"0".repeat(17)}`, owner }, "abcdef");
  assert.match(long, /^e{30}-i-0{17}-abcdef$/);
});

test("quantities are read as Kubernetes reads them, and others are rejected", () => {
  assert.deepEqual(["500m", "2", "1.5Gi", "1k"].map(parseQuantity), [0.5, 2, 1.5 * 2 ** 30, 1000]);
  for (const text of ["", "Gi", "1Q", "-1", "1 Gi"]) assert.throws(() => parseQuantity(text), /invalid quantity/);
});

test("an instance type has its published size and GPUs, or those of its row", () => {
  const rows = { "ml.m5.large": { cpu: "300m" }, "ml.own.type": { cpu: "2", memory: "3Gi", gpus: 2 } };
  const { instanceTypes = {} } = clusterNode(rows, 2 ** 34);
  const sizeOf = (type: string) => {
    const budget = instanceTypes[type];
    return [budget?.vcpuCount, (budget?.memoryBytes ?? 0) / 2 ** 30, budget?.acceleratorCount];
  };
  assert.deepEqual(sizeOf("ml.m5.large"), [0.3, 8, 0]);
  assert.deepEqual(sizeOf("ml.own.type"), [2, 3, 2]);
  assert.deepEqual(sizeOf("ml.g5.12xlarge"), [48, 192, 4]);
  assert.equal(unknownTypeText("ml.m5.large", rows), null);
  assert.equal(unknownTypeText("ml.own.type", rows), null);
  assert.match(
    unknownTypeText("ml.other.type", { "ml.other.type": { cpu: "1" } }) ?? "",
    /ml\.other\.type is not known/,
  );
});
