/** The recorded state machines of a platform, with the transitions during which tests kill it. */
export interface RecordedMachine {
  readonly what: string;
  /** Kinds of documents that the transitions write. */
  readonly kinds: readonly string[];
  readonly transitions: readonly string[];
  readonly tests: readonly string[];
}

const here = "conformance/crashes/kill.test.ts";
const hosting = (name: string) => `packages/hosting/test/${name}-crash.test.ts`;

export const recordedMachines: readonly RecordedMachine[] = [
  {
    what: "endpoint",
    kinds: ["endpoint", "endpoint-state-change", "tags"],
    transitions: ["ready", "failed", "update", "resize", "reached", "advanced", "stop", "start", "delete"],
    tests: [hosting("endpoint"), here],
  },
  {
    what: "inference component",
    kinds: ["inference-component"],
    transitions: ["placed", "settled", "failed", "update", "delete"],
    tests: [hosting("component"), here],
  },
  {
    what: "transform job",
    kinds: ["transform-job", "transform-progress"],
    transitions: ["started", "completed", "failed", "stop", "stopped"],
    tests: [hosting("transform")],
  },
  {
    what: "asynchronous request",
    kinds: ["async-invocation", "async-payload"],
    transitions: ["taken", "answered", "refused", "lost", "interrupted", "orphaned"],
    tests: [hosting("async"), here],
  },
  {
    what: "scalable target",
    kinds: ["scalable-target"],
    transitions: [
      "register",
      "deregister",
      "tag",
      "put policy",
      "delete policy",
      "schedule",
      "unschedule",
      "run",
      "track",
      "step",
    ],
    tests: ["packages/hosting/src/scaling/scaling-crash.test.ts", here],
  },
  {
    what: "alarm",
    kinds: ["alarm", "alarm-history", "alarm-gone"],
    transitions: ["put", "amend", "evaluate", "set", "delete"],
    tests: ["packages/hosting/src/alarms/alarm-crash.test.ts"],
  },
  {
    what: "topic",
    kinds: ["sns-topic", "sns-subscription", "sns-delivery", "sns-dead-letter"],
    transitions: [
      "create",
      "change",
      "delete",
      "subscribe",
      "confirm",
      "amend",
      "leave",
      "publish",
      "retry",
      "give up",
    ],
    tests: ["packages/aws/src/topics/topic-crash.test.ts"],
  },
  {
    what: "log group",
    kinds: ["metric-filter"],
    transitions: [
      "make group",
      "make stream",
      "write",
      "keep",
      "prune",
      "delete stream",
      "delete group",
      "put filter",
      "delete filter",
    ],
    tests: ["packages/aws/src/services/logs/log-crash.test.ts"],
  },
];

/** Kinds of documents that one write creates and one write removes, without states in between. */
export const plainKinds: readonly string[] = [
  "model",
  "endpoint-config",
  "instance-key",
  "model-memory",
  "dashboard",
  "role",
  "policy",
];

/** State machines whose state is in files instead of documents. */
export const fileMachines: readonly { readonly what: string; readonly tests: readonly string[] }[] = [
  { what: "object", tests: ["packages/hosting/src/objects/directory-crash.test.ts", here] },
  { what: "multipart upload", tests: ["packages/hosting/src/objects/directory-store.test.ts", here] },
  {
    what: "models that a multi-model endpoint has unpacked",
    tests: ["packages/hosting/src/process-host/process-host.test.ts", here],
  },
  {
    what: "instances' processes, sockets and directories",
    tests: ["packages/base/src/processes/processes.test.ts", here],
  },
  { what: "Python environments", tests: ["packages/server/src/backends/python/directory-cache.test.ts"] },
];
