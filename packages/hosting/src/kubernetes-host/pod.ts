/** The state of a container in a pod's status; exactly one field is set. */
export interface PodContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: object;
  readonly terminated?: { readonly exitCode: number; readonly reason?: string; readonly message?: string };
}

/** The fields of a pod that the host reads, as the API returns them. */
export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    /** Set when the pod is being deleted. */
    readonly deletionTimestamp?: unknown;
  };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly podIP?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly image?: string;
      readonly restartCount?: number;
      readonly ready?: boolean;
      /** True after the startup probe of the running container has succeeded. */
      readonly started?: boolean;
      readonly state?: PodContainerState;
      readonly lastState?: PodContainerState;
    }[];
  };
}

/** An event of type Warning that Kubernetes has recorded for a pod. */
export interface PodWarning {
  /** Kubernetes' reason, such as `FailedCreatePodSandBox`. */
  readonly reason: string;
  readonly message: string;
}

/** Labels and annotations of pods and Secrets of instances. */
export const instanceLabels = {
  /** The platform that owns the object: the release name of the Helm chart. */
  platform: "galatea/platform",
  instance: "galatea/instance",
  endpoint: "galatea/endpoint",
  /** A hash of the endpoint's name and the fleet's key. */
  fleet: "galatea/fleet",
} as const;

export const instanceAnnotations = {
  /** The `InstanceOwner` as JSON. The next run of the platform deletes an instance without it. */
  owner: "galatea/owner",
  /** A hash of the specs of the instance and its pod. */
  spec: "galatea/spec",
} as const;

const condition = (pod: Pod, type: string) => pod.status?.conditions?.find((each) => each.type === type);

/** True if the agent in the pod has passed its startup probe, and the pod has not ended. */
export const hasAgentStarted = (pod: Pod): boolean =>
  !hasPodEnded(pod) && pod.status?.podIP !== undefined && pod.status.containerStatuses?.[0]?.started === true;

/** True if a pod can no longer run: it has ended, or is being deleted. */
export const hasPodEnded = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp !== undefined || haveProcessesEnded(pod);

/** True if the processes of a pod have ended and are not started again. */
export const haveProcessesEnded = (pod: Pod): boolean => ["Failed", "Succeeded"].includes(pod.status?.phase ?? "");

/** True if the instance in the pod is in service, and the pod is not being deleted. */
export const isPodReady = (pod: Pod): boolean => !hasPodEnded(pod) && condition(pod, "Ready")?.status === "True";

/** Returns the scheduler's message if no node can run the pod; null otherwise. */
export function unschedulable(pod: Pod): string | null {
  const scheduled = condition(pod, "PodScheduled");
  return scheduled?.status === "False" ? (scheduled.message ?? scheduled.reason ?? "no reason given") : null;
}
