import { PlatformSuperseded } from "../instance-agent-http/index.ts";
import type { ClusterApi } from "./cluster-api.ts";

/**
 * Returns a client of the cluster whose changes reject with PlatformSuperseded if `isLeader` resolves with false. A
 * platform that was stopped and continues does not know yet that another one leads: without this, it could delete the
 * other one's pods.
 */
export function fencedCluster(api: ClusterApi, isLeader: () => Promise<boolean>): ClusterApi {
  const check = async () => {
    if (!(await isLeader()))
      throw new PlatformSuperseded("another platform has acquired the records and uses the pods");
  };
  return {
    namespace: api.namespace,
    read: (kind, name) => api.read(kind, name),
    names: (kind, selector) => api.names(kind, selector),
    warnings: (podName) => api.warnings(podName),
    listPods: (selector) => api.listPods(selector),
    watchPods: (options) => api.watchPods(options),
    apply: async (manifest) => {
      await check();
      await api.apply(manifest);
    },
    delete: async (kind, name) => {
      await check();
      await api.delete(kind, name);
    },
  };
}
