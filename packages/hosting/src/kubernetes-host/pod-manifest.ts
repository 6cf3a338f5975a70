import { createHash } from "node:crypto";
import type { Certificate } from "@galatea/base/certificates";
import type { AgentInstanceSpec } from "../instance-agent/index.ts";
import type { InstanceOwner } from "../instances/index.ts";
import type { PodTypeRow, PodTypeRows, Toleration } from "./cluster-node.ts";
import { instanceAnnotations, instanceLabels } from "./pod.ts";

/** A reference to the platform's StatefulSet. Kubernetes deletes the pods when this object is deleted. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** The settings that all pods of a platform share. */
export interface PodSettings {
  readonly namespace: string;
  /** The name of the platform. Pods of other platforms in the namespace are not changed. */
  readonly platform: string;
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly pullSecrets: readonly string[];
  /** Arguments of the image's entry point. The pod's files are at the paths in `agentFiles`. */
  readonly agentArguments: readonly string[];
  /** Additional environment variables of the agent, in the format of Kubernetes' `env`. */
  readonly environment: readonly object[];
  /** The owner of the pods. If null, the pods outlive the platform. */
  readonly owner: OwnerReference | null;
  readonly types: PodTypeRows;
  /** Null: the cluster's default priority. */
  readonly priorityClass: string | null;
  /** Seconds for requests in flight to complete when the pod is deleted. */
  readonly graceSeconds: number;
}

export const agentPort = 8780;
export const probePort = 8781;

/** Paths in the pod. `data` is the volume with models and sockets; the others are from the pod's Secret. */
export const agentFiles = {
  directory: "/etc/galatea/agent",
  certificate: "/etc/galatea/agent/tls.crt",
  key: "/etc/galatea/agent/tls.key",
  authority: "/etc/galatea/agent/ca.crt",
  data: "/data",
} as const;

/** Memory of the agent's process in bytes, in addition to the memory of the instance. */
const agentMemoryBytes = 256 * 2 ** 20;
const sharedMemoryBytesMax = 2 ** 30;
/** Seconds before Kubernetes evicts a pod from a node that does not respond. Kubernetes' default is 300 s. */
const lostNodeSeconds = 5;

/** Returns a hash of an instance's spec and of its pod's. A pod whose hash differs is outdated, and is replaced. */
export function podHash(
  spec: AgentInstanceSpec,
  { environment }: Pick<PodSecrets, "environment">,
  settings: PodSettings,
): string {
  return hashOf(JSON.stringify([spec, podSpec("", spec, Object.keys(environment), settings)]));
}

/** Returns a hash of the fleet of an instance: its endpoint and the key of its variant and generation. */
export const fleetHash = ({ endpointName, fleetKey }: InstanceOwner): string =>
  hashOf(JSON.stringify([endpointName, fleetKey]));

/** Returns the labels of all pods and Secrets of a platform. */
export const platformLabels = (platform: string): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/name": "galatea-instance",
  [instanceLabels.platform]: platform,
});

/** Returns a name for a new pod of an instance. The name is unique for each attempt and a valid host name. */
export function podName({ id, owner }: AgentInstanceSpec, attempt: string): string {
  const endpoint = (owner?.endpointName ?? "job").toLowerCase().slice(0, 30);
  return `${endpoint}-${id}-${attempt}`.replaceAll(/[^a-z0-9-]/g, "-").slice(0, 63);
}

function labelsOf({ id, owner }: AgentInstanceSpec, platform: string): Record<string, string> {
  const labels = { ...platformLabels(platform), [instanceLabels.instance]: id };
  if (owner === null) return labels;
  return { ...labels, ...fleetLabels(owner) };
}

const fleetLabels = (owner: InstanceOwner) => ({
  [instanceLabels.endpoint]: owner.endpointName,
  [instanceLabels.fleet]: fleetHash(owner),
});

/**
 * Returns the budget of a fleet with `instanceCount` instances: one pod may be evicted while all others are ready. A pod that is not ready may
 * always be evicted; otherwise, a pod that never becomes ready would block the drain of its node.
 */
export function disruptionBudgetManifest(
  name: string,
  fleet: InstanceOwner,
  instanceCount: number,
  { namespace, platform, owner }: PodSettings,
): object {
  const labels = { ...platformLabels(platform), ...fleetLabels(fleet) };
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadataOf(name, { namespace, labels, annotations: {}, owner }),
    spec: {
      // Kubernetes supports `maxUnavailable` only for pods of its own controllers.
      minAvailable: instanceCount - 1,
      selector: { matchLabels: labels },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
  };
}

/** The secrets of one pod. No other pod can read them. */
export interface PodSecrets {
  readonly certificate: Certificate;
  /** The client certificate of the platform in PEM. The agent rejects all other clients. */
  readonly platformPem: string;
  /** Environment variables with the keys that the agent uses to download models. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Returns the Secret of a pod. Pod and Secret have the same name. */
export function secretManifest(
  name: string,
  spec: AgentInstanceSpec,
  { certificate, platformPem, environment }: PodSecrets,
  { namespace, platform, owner }: PodSettings,
): object {
  const data = {
    "tls.crt": certificate.certificatePem,
    "tls.key": certificate.keyPem,
    "ca.crt": platformPem,
    ...environment,
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadataOf(name, { namespace, labels: labelsOf(spec, platform), annotations: {}, owner }),
    type: "kubernetes.io/tls",
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
  };
}

/**
 * Returns the pod of one instance. Hosting addresses instances by id and replaces lost pods itself. A Deployment is unsuitable, because it would
 * start pods that belong to no instance.
 */
export function podManifest(
  name: string,
  spec: AgentInstanceSpec,
  secrets: Pick<PodSecrets, "environment">,
  settings: PodSettings,
): object {
  const { namespace, platform, owner } = settings;
  const labels = labelsOf(spec, platform);
  const annotations = {
    [instanceAnnotations.spec]: podHash(spec, secrets, settings),
    ...(spec.owner === null ? {} : { [instanceAnnotations.owner]: JSON.stringify(spec.owner) }),
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: metadataOf(name, { namespace, labels, annotations, owner }),
    spec: podSpec(name, spec, Object.keys(secrets.environment), settings),
  };
}

/** Returns the `spec` of a pod. `name`: the name of the pod and its Secret. `secretVariables`: the environment variables in the Secret. */
function podSpec(
  name: string,
  spec: AgentInstanceSpec,
  secretVariables: readonly string[],
  settings: PodSettings,
): object {
  const { platform, types, priorityClass } = settings;
  const labels = labelsOf(spec, platform);
  const row: PodTypeRow = types[spec.instanceType ?? ""] ?? {};
  const lost = ["not-ready", "unreachable"].map((taint): Toleration => {
    return {
      key: `node.kubernetes.io/${taint}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: lostNodeSeconds,
    };
  });
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    restartPolicy: "Always",
    terminationGracePeriodSeconds: settings.graceSeconds,
    ...(priorityClass === null ? {} : { priorityClassName: priorityClass }),
    ...(settings.pullSecrets.length === 0
      ? {}
      : { imagePullSecrets: settings.pullSecrets.map((each) => ({ name: each })) }),
    ...(row.nodeSelector === undefined ? {} : { nodeSelector: row.nodeSelector }),
    tolerations: [...lost, ...(row.tolerations ?? [])],
    topologySpreadConstraints: spreadOf(labels),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      fsGroup: 10001,
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [agentContainer(name, spec, secretVariables, settings)],
    volumes: [
      { name: "agent", secret: { secretName: name, defaultMode: 0o440 } },
      { name: "data", emptyDir: {} },
      { name: "temporary", emptyDir: {} },
      { name: "shared-memory", emptyDir: { medium: "Memory", sizeLimit: String(sharedMemoryBytesMax) } },
    ],
  };
}

function agentContainer(
  secret: string,
  { budget }: AgentInstanceSpec,
  secretVariables: readonly string[],
  { image, pullPolicy, agentArguments, environment }: PodSettings,
): object {
  const { vcpuCount, memoryBytes, acceleratorCount = 0, diskBytes } = budget;
  const bounded = {
    memory: String(memoryBytes + agentMemoryBytes),
    ...(diskBytes === undefined ? {} : { "ephemeral-storage": String(diskBytes) }),
    ...(acceleratorCount === 0 ? {} : { "nvidia.com/gpu": String(acceleratorCount) }),
  };
  const responds = (path: string) => ({ httpGet: { path, port: "probes" } });
  return {
    name: "agent",
    image,
    imagePullPolicy: pullPolicy,
    args: agentArguments,
    env: [
      // Programs that write to their home directory need a writable one: the root file system is read-only.
      { name: "HOME", value: "/tmp" },
      ...secretVariables.map((key) => ({ name: key, valueFrom: { secretKeyRef: { name: secret, key } } })),
      ...environment,
    ],
    ports: [
      { name: "agent", containerPort: agentPort },
      { name: "probes", containerPort: probePort },
    ],
    startupProbe: { ...responds("/readyz"), periodSeconds: 1, failureThreshold: 120 },
    // The pod is ready when the instance is in service, so that a disruption budget counts instances that serve.
    readinessProbe: { ...responds("/servingz"), periodSeconds: 2, timeoutSeconds: 5 },
    livenessProbe: { ...responds("/healthz"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    resources: { requests: { cpu: `${Math.ceil(vcpuCount * 1000)}m`, ...bounded }, limits: bounded },
    // A container logs why it ends. Kubernetes copies the last log lines to the pod's status.
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      { name: "agent", mountPath: agentFiles.directory, readOnly: true },
      { name: "data", mountPath: agentFiles.data },
      { name: "temporary", mountPath: "/tmp" },
      { name: "shared-memory", mountPath: "/dev/shm" },
    ],
  };
}

/**
 * Spreads the instances of one fleet over nodes. The fleet's label differs between generations, so that old instances are not counted during an
 * update.
 */
function spreadOf(labels: Readonly<Record<string, string>>): readonly object[] {
  const { [instanceLabels.endpoint]: endpoint } = labels;
  if (endpoint === undefined) return [];
  return [
    {
      maxSkew: 1,
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: { matchLabels: { [instanceLabels.endpoint]: endpoint } },
      matchLabelKeys: [instanceLabels.fleet],
    },
  ];
}

interface Metadata extends Pick<PodSettings, "namespace" | "owner"> {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

function metadataOf(name: string, { namespace, labels, annotations, owner }: Metadata): object {
  return { name, namespace, labels, annotations, ...(owner === null ? {} : { ownerReferences: [owner] }) };
}

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);
