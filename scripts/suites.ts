import { globSync } from "node:fs";
import { root } from "./source-tree.ts";

/** Test files that start servers, platforms and real clients; the unit tests of the packages and of `scripts` are not among them. */
export interface Suite {
  /** Paths and globs from the repository's root. */
  readonly files: readonly string[];
  /**
   * The command that runs the files: `npm test`, `npm run test:rest`, or `npm run test:system`, whose suites need programs that a fresh machine lacks.
   * `npm run test:all` runs all files.
   */
  readonly run: "test" | "rest" | "system";
  /** What the tests check; for `rest` and `system`, also why `npm test` excludes them. */
  readonly why: string;
  /** The tests compare wall time, or take the machine's memory or processor: no other file runs at the same time. */
  readonly alone?: true;
}

const faults = (...names: readonly string[]) => names.map((name) => `conformance/faults/${name}.test.ts`);
const platform = (...names: readonly string[]) => names.map((name) => `conformance/sagemaker/${name}.test.ts`);
const frameworks = (...names: readonly string[]) => names.map((name) => `conformance/frameworks/${name}.test.ts`);

/** Every suite, once. A new test file gets a row, or a line in one. */
export const suites: readonly Suite[] = [
  {
    run: "test",
    files: ["conformance/kserve/*.test.ts"],
    why: "Responses over HTTP, gRPC and the container contract are those recorded from tritonserver; tritonclient over HTTP and gRPC.",
  },
  {
    run: "test",
    files: ["conformance/grpc/*.test.ts"],
    why: "grpcio passes gRPC's interop cases and connects over TLS.",
  },
  {
    run: "test",
    files: ["conformance/s3/*.test.ts"],
    why: "boto3 and the JavaScript SDK store, list and read objects; refusals have S3's codes.",
  },
  {
    run: "test",
    files: platform("deployment", "failures"),
    why: "boto3 deploys a multi-model endpoint, invokes it, and finds it again after kill -9 of the platform.",
  },
  {
    run: "test",
    files: platform("openai"),
    why: "OpenAI's client chats with an endpoint.",
  },
  {
    run: "test",
    files: [
      "examples/{add_sub,boto3,grafana}/*.test.ts",
      "examples/story/{options,picture-page,progress,tables}.test.ts",
    ],
    why: "The examples of README.md run and print what it says.",
  },
  {
    run: "test",
    files: faults("process-crashes", "hangs", "models", "failed-start", "logged-once"),
    why: "A worker that dies, hangs or misbehaves fails its own requests and no others.",
  },
  {
    run: "test",
    files: faults("requests", "configurations", "clients", "streams", "calls"),
    why: "Malformed requests and configurations are refused; slow and vanishing clients cost nobody else anything.",
  },
  {
    run: "test",
    files: faults("containers", "confinement", "environment", "private-data"),
    why: "The container contract holds under wrong use; tenants get no secrets of the platform.",
  },
  {
    run: "test",
    files: faults("platform-crash", "restarts"),
    why: "A platform that dies has everything again that it acknowledged, and its instances with what they have in memory.",
  },
  {
    run: "test",
    files: [
      "bench/**/*.test.ts",
      "conformance/{environments,fuzz,gpu,soak}/*.test.ts",
      "conformance/crashes/machines.test.ts",
      "conformance/documents/blocks.test.ts",
      "conformance/trees/{configurations,treelite3}.test.ts",
    ],
    why: "The programs beside the suites read their options and judge right; tree models answer without the libraries that made them.",
  },
  {
    run: "test",
    files: ["cluster/*.test.ts"],
    why: "The chart's values are those of its schema. `npm run cluster` installs the chart in a cluster and runs `cluster/tests`.",
  },
  {
    run: "rest",
    files: platform(
      "branches",
      "capture",
      "clients",
      "components",
      "conversation",
      "doors",
      "from-zero",
      "many-models",
      "queue-scaling",
      "queues",
      "sagemaker",
      "algorithms",
      "serverless",
      "streams",
      "traffic",
      "transform",
      "waiters",
    ),
    why: "Every operation by every AWS client, each way of hosting. Environments of 1 GB, minutes.",
  },
  {
    run: "rest",
    files: faults(
      "archives",
      "backup",
      "call-limits",
      "container-credentials",
      "container-streams",
      "convert-full-disk",
      "damage",
      "full-disk",
      "generate-streams",
      "instance-reach",
      "kept-models",
      "logs",
      "memory",
      "metrics",
      "model-files",
      "onnx",
      "onnx-memory",
      "onnx-runners",
      "pipeline-models",
      "pipelines",
      "platform-stops",
      "platform-streams",
      "python-packages",
      "restart-load",
      "runners",
      "serverless-workers",
      "streamed-ensembles",
      "transform-crash",
      "transform-full-disk",
    ),
    why: "Disks, memory, damaged files, stops, packages, ensembles, transform jobs under faults. Minutes.",
  },
  {
    run: "rest",
    files: faults("agents"),
    why: "Instances on two agents; kill -9 of an agent and of the platform; certificates that are not accepted. A minute.",
  },
  {
    run: "rest",
    files: faults("hung-shadow", "stops", "tenants"),
    alone: true,
    why: "A hung shadow delays a deletion by seconds at most; stops at any moment of a start; a tenant takes all memory.",
  },
  {
    run: "rest",
    files: ["conformance/crashes/kill.test.ts"],
    why: "kill -9 of a platform again and again in the middle of everything. A minute.",
  },
  {
    run: "rest",
    files: ["conformance/records/*.test.ts"],
    why: "Records and log lines in PostgreSQL 14 and 18, killed, cut off and taken over, with instances on agents; gateways. Downloads of 50 MB, minutes.",
  },
  {
    run: "rest",
    files: ["conformance/s3/services/hung-service.test.ts"],
    why: "A platform whose S3 service hangs. Minutes.",
  },
  {
    run: "system",
    files: ["conformance/s3/services/{minio,versity}.test.ts"],
    why: "Objects in Versity's S3 gateway and in MinIO, which are killed. Builds of minutes, with Go.",
  },
  {
    run: "rest",
    files: ["conformance/trees/{agreement,hostile,memory,xgboost-bits}.test.ts", "examples/reading/*.test.ts"],
    why: "Tree models answer as the libraries that trained them. Environments of 600 MB.",
  },
  {
    run: "rest",
    files: ["conformance/packaging/*.test.ts"],
    why: "The packed files install with npm and pip, as root and not, serve models and host an endpoint. Downloads of 100 MB, minutes.",
  },
  {
    run: "system",
    files: ["conformance/containers/*.test.ts"],
    why: "Users' own images in containers, with SageMaker's toolkit among them, and Galatea's own image: they need root and Debian's docker.io, docker-registry, iptables and mmdebstrap. Downloads of 500 MB, minutes.",
  },
  {
    run: "rest",
    files: ["conformance/documents/snippets.test.ts"],
    alone: true,
    why: "The blocks of README.md and docs/ run as a reader types them and print what is shown. On the ports that readers use.",
  },
  {
    run: "rest",
    files: ["examples/minilm/*.test.ts", "examples/story/story.test.ts"],
    why: "Examples with the weights of a real sentence encoder. Downloads of 90 MB.",
  },
  {
    run: "rest",
    files: frameworks("dali", "pytorch", "scripts-hostile", "tensorflow"),
    alone: true,
    why: "Models in frameworks, with comparisons of wall time. Packages of gigabytes.",
  },
  {
    run: "rest",
    files: [
      ...frameworks(
        "dali-gpus",
        "dali-hostile",
        "dali-video",
        "image-ensemble",
        "model-builder",
        "new-script",
        "packed-environment",
        "pytorch-gpus",
        "pytorch-hostile",
        "script-failures",
        "script-sessions",
        "script-streams",
        "scripts",
        "scripts-batching",
        "serial-pipeline",
        "tensorflow-gpus",
        "tensorflow-hostile",
        "tensorflow-serving",
        "tensorflow-serving-archives",
        "tensorflow-serving-scripts",
        "tensorflow-serving-sdk",
        "toolkit",
        "toolkit-contract",
        "xgboost-scripts",
      ),
      "examples/resnet50/*.test.ts",
    ],
    why: "Models and scripts in PyTorch, TensorFlow, DALI, scikit-learn and XGBoost. Packages of gigabytes.",
  },
];

/** The files of some suites, sorted, by their paths from the repository's root. */
export function filesOf(chosen: readonly Suite[]): readonly string[] {
  return globSync(
    chosen.flatMap(({ files }) => files),
    { cwd: root },
  ).toSorted();
}
