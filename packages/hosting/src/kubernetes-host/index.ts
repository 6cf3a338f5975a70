/** Instances as pods of a Kubernetes cluster. Loads the client of Kubernetes' API, so only a platform that runs in a cluster imports this module. */
export {
  connectCluster,
  ClusterApiError,
  type ClusterApi,
  type ListedPods,
  type ObjectKind,
  type PodWatchOptions,
} from "./cluster-api.ts";
export { clusterNode, type PodTypeRows } from "./cluster-node.ts";
export { KubernetesHost, type KubernetesHostOptions } from "./kubernetes-host.ts";
export { issueAgentKeys } from "./agent-keys.ts";
export { parseQuantity } from "./quantity.ts";
export type { AgentKeys } from "./pod-instance.ts";
export { agentFiles, agentPort, probePort, type OwnerReference, type PodSettings } from "./pod-manifest.ts";
