/** Statuses that Kubernetes 1.36 with containerd reported in a test cluster, without fields that the host does not read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { podProblem, refusedPodProblem, warnedPodProblem } from "./pod-problem.ts";
import type { Pod } from "./pod.ts";

type Status = NonNullable<Pod["status"]>;
type Container = NonNullable<Status["containerStatuses"]>[number];

const scheduled = [{ type: "PodScheduled", status: "True" }];
const container = (state: Partial<Container>): Status => ({
  phase: "Pending",
  conditions: scheduled,
  containerStatuses: [{ name: "agent", image: "galatea:0.1.0", restartCount: 0, ready: false, ...state }],
});
const unschedulable = (missing: string): Status => ({
  phase: "Pending",
  conditions: [
    {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message:
        `0/2 nodes are available: 2 Insufficient ${missing}. no new claims to deallocate, preemption: 0/2 nodes are available: ` +
        "2 Preemption is not helpful for scheduling.",
    },
  ],
});
const capacity = "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error: ";
const instead = "Use a smaller instance type, add nodes, or delete what is no longer needed.";
const usage =
  "galatea agent needs --listen: where platforms reach the agent, such as 0.0.0.0:8780 or [::]:8780; port 0 takes any free one. Required\n" +
  "Try `galatea agent --help`.\n";

interface Recorded {
  readonly status: Status;
  readonly reason: string;
  readonly isFinal: boolean;
  readonly text: string;
}

const recorded: Readonly<Record<string, Recorded>> = {
  "no node has the memory": {
    status: unschedulable("memory"),
    reason: "Unschedulable",
    isFinal: false,
    text: `${capacity}no node of the cluster takes the pod: 0/2 nodes are available: 2 Insufficient memory. ${instead}`,
  },
  "no node has a GPU": {
    status: unschedulable("nvidia.com/gpu"),
    reason: "Unschedulable",
    isFinal: false,
    text: `${capacity}no node of the cluster takes the pod: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu. ${instead}`,
  },
  "the image is not on the node": {
    status: container({
      image: "galatea:missing",
      state: {
        waiting: {
          message: 'Container image "galatea:missing" is not present with pull policy of Never',
          reason: "ErrImageNeverPull",
        },
      },
    }),
    reason: "ErrImageNeverPull",
    isFinal: true,
    text:
      'The image galatea:missing cannot be pulled: Container image "galatea:missing" is not present with pull policy of Never. ' +
      "Check image.repository, image.tag and image.pullSecrets of the chart's values.",
  },
  "the registry does not respond": {
    status: container({
      image: "registry.invalid/galatea:1",
      state: {
        waiting: {
          message:
            'Back-off pulling image "registry.invalid/galatea:1": ErrImagePull: failed to resolve reference "registry.invalid/galatea:1"',
          reason: "ImagePullBackOff",
        },
      },
    }),
    reason: "ImagePullBackOff",
    isFinal: false,
    text:
      'The image registry.invalid/galatea:1 cannot be pulled: Back-off pulling image "registry.invalid/galatea:1": ErrImagePull: ' +
      'failed to resolve reference "registry.invalid/galatea:1". ' +
      "Check image.repository, image.tag and image.pullSecrets of the chart's values.",
  },
  "the image has no valid name": {
    status: container({
      image: "Bad//NAME",
      state: {
        waiting: {
          message: 'couldn\'t parse image name "Bad//NAME": invalid reference format',
          reason: "InvalidImageName",
        },
      },
    }),
    reason: "InvalidImageName",
    isFinal: true,
    text:
      'The image Bad//NAME cannot be pulled: couldn\'t parse image name "Bad//NAME": invalid reference format. ' +
      "Check image.repository, image.tag and image.pullSecrets of the chart's values.",
  },
  "the pod needs more memory than its limit": {
    status: {
      ...container({
        lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } },
        restartCount: 4,
        state: {
          waiting: {
            message: "back-off 1m20s restarting failed container=agent pod=oom_rec(364f0765)",
            reason: "CrashLoopBackOff",
          },
        },
      }),
      phase: "Running",
    },
    reason: "OOMKilled",
    isFinal: false,
    text: "The pod needed more memory than its instance type has, and was ended. Use a larger instance type.",
  },
  "the agent has just ended again": {
    status: {
      ...container({
        lastState: { terminated: { exitCode: 1, message: usage, reason: "Error" } },
        restartCount: 4,
        state: { terminated: { exitCode: 1, message: usage, reason: "Error" } },
      }),
      phase: "Running",
    },
    reason: "Error",
    isFinal: false,
    text: `The instance agent ends repeatedly (exit code 1): ${usage.trim().replace(/\.$/, "")}. The pod's log has the reason.`,
  },
  "a Secret is missing": {
    status: container({
      state: { waiting: { message: 'secret "none" not found', reason: "CreateContainerConfigError" } },
    }),
    reason: "CreateContainerConfigError",
    isFinal: false,
    text: 'The container of the pod cannot be created: secret "none" not found.',
  },
  "the pod has used its disk": {
    status: {
      ...container({ state: { terminated: { exitCode: 137, reason: "Error" } } }),
      phase: "Failed",
      reason: "Evicted",
      message: "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. ",
    },
    reason: "Evicted",
    isFinal: true,
    text:
      "The node ended the pod: Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. " +
      "Raise instances.disk of the chart's values, or use nodes with more memory and disk.",
  },
};

for (const [name, { status, ...expected }] of Object.entries(recorded)) {
  test(`the problem of a pod: ${name}`, () => {
    assert.deepEqual(podProblem({ metadata: { name: "p" }, status }), expected);
  });
}

test("a pod that starts or runs has no problem, also after a restart of its agent", () => {
  for (const status of [
    { phase: "Pending", conditions: [] },
    container({ state: { waiting: { reason: "ContainerCreating" } } }),
    { ...container({ state: { running: {} } }), phase: "Running" },
    {
      ...container({ state: { running: {} }, lastState: { terminated: { exitCode: 1, reason: "Error" } } }),
      phase: "Running",
    },
  ]) {
    assert.equal(podProblem({ metadata: { name: "p" }, status }), null);
  }
  assert.equal(podProblem({ metadata: { name: "p" } }), null);
});

test("a reason that Kubernetes adds later is shown with its message", () => {
  const status = { phase: "Failed", reason: "NewReason", message: "the words of Kubernetes" };
  assert.deepEqual(podProblem({ metadata: { name: "p" }, status }), {
    reason: "NewReason",
    isFinal: true,
    text: "The pod failed with NewReason: the words of Kubernetes.",
  });
});

test("a pod that a quota or an admission rule refuses never starts; one that the API could not store may", () => {
  const quota = 'pods "quota" is forbidden: exceeded quota: few, requested: pods=1, used: pods=9, limited: pods=9';
  assert.deepEqual(refusedPodProblem(403, quota), {
    reason: "FailedCreate",
    isFinal: true,
    text: `${capacity}the quota of the namespace is exceeded: ${quota}. ${instead}`,
  });
  assert.deepEqual(
    [422, 500].map((status) => refusedPodProblem(status, "no")),
    [true, false].map((isFinal) => ({
      reason: "FailedCreate",
      isFinal,
      text: "Kubernetes refuses the pod of the instance: no.",
    })),
  );
});

test("the newest event of a pod is its problem if the status has no reason", () => {
  const sandbox =
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "1f": plugin type="bridge" failed (add)';
  const message = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available.";
  const textOf = (reason: string, said: string) =>
    warnedPodProblem([
      { reason: "Old", message: "" },
      { reason, message: said },
    ])?.text;
  assert.equal(
    textOf("FailedCreatePodSandBox", sandbox),
    `The node cannot create the pod's sandbox: ${sandbox}. Ask an operator of the cluster to check the node's network plugin and container runtime.`,
  );
  assert.equal(
    textOf("FailedScheduling", message),
    `${capacity}no node of the cluster takes the pod: 0/2 nodes are available: 2 Insufficient cpu. ${instead}`,
  );
  assert.equal(
    textOf("NewReason", "the words of Kubernetes."),
    "Kubernetes reports NewReason for the pod: the words of Kubernetes.",
  );
  assert.equal(warnedPodProblem([]), null);
});
