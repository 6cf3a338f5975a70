/**
 * Instances as pods of a Kubernetes cluster. Import it only in a platform that runs in a cluster: it loads the large client library of Kubernetes'
 * API.
 */
export {
  connectCluster,
  ClusterApiError,
  type ClusterApi,
  type ListedPods,
  type ObjectKind,
  type PodWatchOptions,
} from "./cluster-api.ts";
export { fencedCluster } from "./fenced-cluster.ts";
export { clusterNode, type PodTypeRows } from "./cluster-node.ts";
export { KubernetesHost, type KubernetesHostOptions } from "./kubernetes-host.ts";
export { issueAgentKeys } from "./agent-keys.ts";
export { parseQuantity } from "./quantity.ts";
export type { AgentKeys } from "./pod-instance.ts";
export { agentFiles, agentPort, probePort, type OwnerReference, type PodSettings } from "./pod-manifest.ts";
