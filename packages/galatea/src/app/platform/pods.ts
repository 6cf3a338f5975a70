import { isIPv6 } from "node:net";
import { systemClock, type Logger } from "@galatea/base";
import type { InstanceKeys } from "@galatea/hosting/instance-keys";
import type { ClusterApi, KubernetesHost, OwnerReference } from "@galatea/hosting/kubernetes-host";
import type { NodeDescription } from "@galatea/hosting/nodes";
import type { Leadership } from "./platform-storage.ts";
import { readPodsFile, type PodsFile } from "./pods-file.ts";

export interface PodsOptions {
  /** The path given by `--pods`. */
  readonly pods: string;
  /** The S3 service that stores objects; null: the platform stores them. */
  readonly objects: string | null;
  readonly region: string;
  readonly account: string;
  /** Null if no other platform can acquire the records. */
  readonly leadership: Leadership | null;
  /** Arguments of `serve` for containers: the Python interpreter, and the isolation of models. */
  readonly workerArguments: readonly string[];
  readonly log: Logger;
}

/** The cluster in which instances run as pods. */
export interface Pods {
  /** The node that represents the cluster in hosting. */
  readonly node: NodeDescription;
  /** The URL at which pods reach the platform. */
  readonly platformUrl: string;
  /** Opens the host. Resolves when the platform's existing pods are listed. */
  openHost(keys: InstanceKeys): Promise<KubernetesHost>;
}

/** Time in which the agent ends its containers after `drainSeconds`, in seconds. */
const endSeconds = 30;
/** The Kubernetes client, with the version that packages/hosting names. */
const client = "@kubernetes/client-node@2";
/** Time without contact to the platform after which an agent ends its instance, in seconds. */
const agentGraceSeconds = 3600;

/**
 * Opens the connection to the cluster and reads the Kubernetes objects of the platform's release. Loads the Kubernetes
 * client, which a platform on one machine does not need.
 */
export async function openPods(options: PodsOptions): Promise<Pods> {
  const { clusterNode, connectCluster, fencedCluster, KubernetesHost, issueAgentKeys, parseQuantity } =
    await importKubernetesHost();
  const file = await readPodsFile(options.pods);
  const { leadership } = options;
  const cluster = connectCluster(systemClock);
  const api = leadership === null ? cluster : fencedCluster(cluster, () => leadership.isHolder());
  const { platform, types, startSeconds } = file;
  const node = clusterNode(types, Math.floor(parseQuantity(file.disk)));
  const platformUrl = await serviceUrl(api, platform);
  const owner = await statefulSet(api, platform);
  const { agentArguments } = await agentCommand(options, platformUrl, file);
  return {
    node,
    platformUrl,
    openHost: (keys) =>
      KubernetesHost.open({
        api,
        settings: {
          ...file,
          namespace: api.namespace,
          agentArguments,
          owner,
          priorityClass: file.priorityClass === "" ? null : file.priorityClass,
          graceSeconds: file.drainSeconds + endSeconds,
        },
        node: node.id,
        podStartMsMax: startSeconds * 1000,
        epoch: leadership?.epoch ?? null,
        issueKeys: (spec) => issueAgentKeys(spec, keys, { accountId: options.account, region: options.region }),
        clock: systemClock,
        logger: options.log,
      }),
  };
}

/** Rejects with the command that installs the Kubernetes client, 67 MB, if it is missing: npm does not install it with galatea. */
async function importKubernetesHost() {
  try {
    return await import("@galatea/hosting/kubernetes-host");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Error(
      "--pods needs the package @kubernetes/client-node: install it where galatea is installed, " +
        `with \`npm install ${client}\` (or \`npm install --global ${client}\`)`,
      { cause: error },
    );
  }
}

async function agentCommand(options: PodsOptions, platformUrl: string, { drainSeconds, flags }: PodsFile) {
  const { agentFiles, agentPort, probePort } = await importKubernetesHost();
  const { objects, region, workerArguments } = options;
  return {
    agentArguments: [
      "agent",
      `--listen=0.0.0.0:${agentPort}`,
      `--probe-port=${probePort}`,
      `--tls-cert=${agentFiles.certificate}`,
      `--tls-key=${agentFiles.key}`,
      `--tls-ca=${agentFiles.authority}`,
      `--objects=${objects ?? platformUrl}`,
      `--region=${region}`,
      `--data=${agentFiles.data}`,
      `--drain-secs=${drainSeconds}`,
      `--instance-grace-secs=${agentGraceSeconds}`,
      ...workerArguments,
      ...flags,
    ],
  };
}

/**
 * Returns the URL of the platform's Service. It contains the Service's IP address, which also works in a cluster
 * without DNS.
 */
async function serviceUrl(api: ClusterApi, name: string): Promise<string> {
  const service = (await api.read("Service", name)) as {
    readonly spec?: { readonly clusterIP?: string; readonly ports?: readonly { readonly port: number }[] };
  } | null;
  const { clusterIP, ports: [port] = [] } = service?.spec ?? {};
  if (clusterIP === undefined || clusterIP === "None" || port === undefined)
    throw new Error(
      `--pods needs the Service ${name} of the platform in the namespace ${api.namespace}, with an address`,
    );
  return `http://${isIPv6(clusterIP) ? `[${clusterIP}]` : clusterIP}:${port.port}`;
}

/**
 * Returns the platform's StatefulSet as the owner of the pods, so that Kubernetes deletes the pods together with it.
 */
async function statefulSet(api: ClusterApi, name: string): Promise<OwnerReference> {
  const found = (await api.read("StatefulSet", name)) as { readonly metadata?: { readonly uid?: string } } | null;
  const uid = found?.metadata?.uid;
  if (uid === undefined)
    throw new Error(`--pods needs the StatefulSet ${name} of the platform in the namespace ${api.namespace}`);
  return { apiVersion: "apps/v1", kind: "StatefulSet", name, uid };
}
