/** The recorded state machines of a platform, with the transitions during which tests kill it. */
export interface RecordedMachine {
  readonly what: string;
  /** Kinds of documents that the transitions write. */
  readonly kinds: readonly string[];
  readonly moves: readonly string[];
  readonly tests: readonly string[];
}

const here = "conformance/deaths/kill.test.ts";
const hosting = (name: string) => `packages/hosting/test/${name}-deaths.test.ts`;

export const recordedMachines: readonly RecordedMachine[] = [
  {
    what: "endpoint",
    kinds: ["endpoint", "endpoint-state-change", "tags"],
    moves: ["ready", "failed", "update", "resize", "reached", "advanced", "stop", "start", "delete"],
    tests: [hosting("endpoint"), here],
  },
  {
    what: "inference component",
    kinds: ["inference-component"],
    moves: ["placed", "settled", "failed", "update", "delete"],
    tests: [hosting("component"), here],
  },
  {
    what: "transform job",
    kinds: ["transform-job", "transform-progress"],
    moves: ["started", "completed", "failed", "stop", "stopped"],
    tests: [hosting("transform")],
  },
  {
    what: "asynchronous request",
    kinds: ["async-invocation", "async-payload"],
    moves: ["taken", "answered", "refused", "lost", "interrupted", "orphaned"],
    tests: [hosting("async"), here],
  },
  {
    what: "scalable target",
    kinds: ["scalable-target"],
    moves: [
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
    tests: ["packages/hosting/src/scaling/scaling-deaths.test.ts", here],
  },
  {
    what: "alarm",
    kinds: ["alarm", "alarm-history", "alarm-gone"],
    moves: ["put", "amend", "evaluate", "set", "delete"],
    tests: ["packages/hosting/src/alarms/alarm-deaths.test.ts"],
  },
  {
    what: "topic",
    kinds: ["sns-topic", "sns-subscription", "sns-delivery", "sns-dead-letter"],
    moves: ["create", "change", "delete", "subscribe", "confirm", "amend", "leave", "publish", "retry", "give up"],
    tests: ["packages/aws/src/topics/topic-deaths.test.ts"],
  },
  {
    what: "log group",
    kinds: ["metric-filter"],
    moves: [
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
    tests: ["packages/aws/src/services/logs/log-deaths.test.ts"],
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
export const filedMachines: readonly { readonly what: string; readonly tests: readonly string[] }[] = [
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
