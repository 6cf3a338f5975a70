import { unschedulable, type PodContainerState, type Pod, type PodWarning } from "./pod.ts";

/** The reason why a pod does not run its agent. */
export interface PodProblem {
  /** Kubernetes' reason, such as `ImagePullBackOff`. */
  readonly reason: string;
  /** The problem and what to do about it, for a FailureReason. */
  readonly text: string;
  /** True if the pod cannot run until the operator changes something. Waiting is useless then. */
  readonly isFinal: boolean;
}

interface Facts {
  /** Kubernetes' message; empty if there is none. */
  readonly message: string;
  readonly image: string;
  readonly exitCode: number | null;
}

interface Row {
  readonly isFinal: boolean;
  readonly text: (facts: Facts) => string;
}

const capacityText = (cause: string) =>
  "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error: " +
  `${cause}. Use a smaller instance type, add nodes, or delete what is no longer needed.`;

const pullAdvice = "Check image.repository, image.tag and image.pullSecrets of the chart's values.";
const pulling: Row = {
  isFinal: false,
  text: ({ image, message }) => `The image ${image} cannot be pulled${after(message)}. ${pullAdvice}`,
};
const memory: Row = {
  isFinal: false,
  text: () => "The pod needed more memory than its instance type has, and was ended. Use a larger instance type.",
};
const crashing: Row = {
  isFinal: false,
  text: ({ exitCode, message }) =>
    `The instance agent ends repeatedly${exitCode === null ? "" : ` (exit code ${exitCode})`}${after(message)}. ` +
    "The pod's log has the reason.",
};
const nodePressure: Row = {
  isFinal: true,
  text: ({ message }) =>
    `The node ended the pod${after(message)}. Raise instances.disk of the chart's values, or use nodes with more memory and disk.`,
};

/** Known problems, by the reason in the status of a pod or container. */
const rows: Readonly<Record<string, Row>> = {
  Unschedulable: {
    isFinal: false,
    text: ({ message }) => capacityText(`no node of the cluster takes the pod${after(message)}`),
  },
  ErrImagePull: pulling,
  ImagePullBackOff: pulling,
  ErrImageNeverPull: { ...pulling, isFinal: true },
  InvalidImageName: { ...pulling, isFinal: true },
  CrashLoopBackOff: crashing,
  Error: crashing,
  OOMKilled: memory,
  Evicted: nodePressure,
  OutOfmemory: nodePressure,
  OutOfcpu: nodePressure,
  CreateContainerConfigError: {
    isFinal: false,
    text: ({ message }) => `The container of the pod cannot be created${after(message)}.`,
  },
};

/** Returns the problem of a pod that does not run its agent; null while the pod starts or runs. */
export function podProblem(pod: Pod): PodProblem | null {
  const message = unschedulable(pod);
  if (message !== null)
    return problemOf("Unschedulable", { message: withoutPreemption(message), image: "", exitCode: null });
  const [container] = pod.status?.containerStatuses ?? [];
  const image = container?.image ?? "";
  const { waiting, terminated } = container?.state ?? {};
  const last = terminated ?? container?.lastState?.terminated;
  const exitCode = last?.exitCode ?? null;
  // After an out-of-memory kill, the container waits in CrashLoopBackOff. Only its last state has the cause.
  if (last?.reason === "OOMKilled") return problemOf("OOMKilled", { message: "", image, exitCode });
  if (waiting?.reason !== undefined && rows[waiting.reason] !== undefined)
    return problemOf(waiting.reason, { message: messageOf(waiting, last), image, exitCode });
  if (pod.status?.phase === "Failed" || terminated !== undefined) {
    const reason = pod.status?.reason ?? terminated?.reason ?? "Error";
    return problemOf(reason, { message: pod.status?.message ?? terminated?.message ?? "", image, exitCode });
  }
  return null;
}

const noHelp = "Ask an operator of the cluster";

/** Problems that the status of a pod does not show, by the reason of the event. */
const warningRows: Readonly<Record<string, (message: string) => string>> = {
  FailedScheduling: (message) =>
    capacityText(`no node of the cluster takes the pod${after(withoutPreemption(message))}`),
  FailedCreatePodSandBox: (message) =>
    `The node cannot create the pod's sandbox${after(message)}. ${noHelp} to check the node's network plugin and container runtime.`,
  FailedMount: (message) => `A volume of the pod cannot be mounted${after(message)}. ${noHelp} to check the node.`,
  Unhealthy: (message) => `The instance agent does not become ready${after(message)}. The pod's log has the reason.`,
};

/**
 * Returns the problem in the newest warning about a pod; null if there are no warnings. Use it for a pod that has not started in time and whose
 * status has no reason, for example because its sandbox cannot be created.
 */
export function warnedPodProblem(warnings: readonly PodWarning[]): PodProblem | null {
  const newest = warnings.at(-1);
  if (newest === undefined) return null;
  const { reason, message } = newest;
  const text = warningRows[reason]?.(message) ?? `Kubernetes reports ${reason} for the pod${after(message)}.`;
  return { reason, text, isFinal: false };
}

/** Returns the scheduler's message without the sentences about claims and preemption, which do not describe the missing capacity. */
const withoutPreemption = (message: string) =>
  message.replace(/\s*(?:no new claims to deallocate|preemption:).*$/s, "");

/**
 * Returns the message of a waiting container. For a crashing container, returns the last message of the container, because Kubernetes' own
 * message only repeats the pod's name.
 */
function messageOf(waiting: NonNullable<PodContainerState["waiting"]>, last: PodContainerState["terminated"]): string {
  return waiting.reason === "CrashLoopBackOff" ? (last?.message ?? "") : (waiting.message ?? "");
}

/** Returns the problem when the API refuses to create a pod. */
export function refusedPodProblem(status: number, message: string): PodProblem {
  if (status === 403 && /exceeded quota/.test(message)) {
    const text = capacityText(`the quota of the namespace is exceeded${after(message)}`);
    return { reason: "FailedCreate", text, isFinal: true };
  }
  const text = `Kubernetes refuses the pod of the instance${after(message)}.`;
  return { reason: "FailedCreate", text, isFinal: status >= 400 && status < 500 };
}

function problemOf(reason: string, facts: Facts): PodProblem {
  const row = rows[reason];
  if (row === undefined)
    return { reason, text: `The pod failed with ${reason}${after(facts.message)}.`, isFinal: true };
  return { reason, text: row.text(facts), isFinal: row.isFinal };
}

const after = (message: string) => (message === "" ? "" : `: ${message.trim().replace(/\.$/, "")}`);
