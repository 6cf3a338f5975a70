import type { Flag, FlagValue } from "./flags.ts";

type Row = readonly [name: string, kind: Flag["kind"], ...harmless: FlagValue[]];

const rows = (refused: string, partOf: string | null, rows: readonly Row[]): readonly Flag[] =>
  rows.map(([name, kind, ...harmless]) => ({
    name,
    kind,
    about: "",
    status: { refused, harmless, ...(partOf === null ? {} : { partOf }) },
  }));

const repeatable = (flag: Flag): Flag => ({ ...flag, repeatable: true });

const vertex = "the Vertex AI front end is not built";
const trace = "traces come with a later release";
const cache = "the response cache comes with a later release";
const rateLimit = "the rate limiter comes with a later release; instances run when they are free";

/**
 * tritonserver's flags for what this server does not do yet, each with the values that ask for nothing: its default where
 * that is to be without the feature. Those are accepted; every other value is refused.
 */
export const unbuiltFlags: readonly Flag[] = [
  ...rows(vertex, null, [["allow-vertex-ai", "boolean", false]]),
  ...rows(vertex, "allow-vertex-ai", [
    ["vertex-ai-port", "integer", 8080],
    ["vertex-ai-thread-count", "integer", 8],
    ["vertex-ai-default-model", "string", ""],
  ]),
  ...rows(trace, null, [
    ["trace-config", "string", "level=OFF", "rate=1000", "count=-1", "mode=triton", "triton,log-frequency=0"],
    ["trace-level", "string", "OFF"],
  ]).map(repeatable),
  ...rows(trace, null, [
    ["trace-file", "string", ""],
    ["trace-rate", "integer", 1000],
    ["trace-count", "integer", -1],
    ["trace-log-frequency", "integer", 0],
  ]),
  ...rows(cache, null, [["cache-config", "string"]]).map(repeatable),
  ...rows(cache, null, [["response-cache-byte-size", "integer", 0]]),
  ...rows(rateLimit, null, [
    ["rate-limit", "string", "off"],
    ["rate-limit-resource", "string"],
  ]),
  ...rows("summaries and histograms of latencies come with a later release; counters are there", null, [
    ["metrics-config", "string", "counter_latencies=true", "summary_latencies=false", "histogram_latencies=false"],
  ]).map(repeatable),
  ...rows("polling comes with a later release; use --model-control-mode=explicit", null, [
    ["repository-poll-secs", "integer", 15],
  ]),
  ...rows("archives of a multi-model endpoint are namespaced always; repositories are not yet", null, [
    ["model-namespacing", "boolean", false],
  ]),
  ...rows("a load that failed is not repeated; load the model again", null, [["model-load-retry-count", "integer", 0]]),
  ...rows("one process owns a port", null, [
    ["reuse-http-port", "boolean", false],
    ["reuse-grpc-port", "boolean", false],
  ]),
  ...rows("client shared memory comes with a later release", null, [["allow-client-shm", "boolean", false]]),
  ...rows("give the ports one by one", null, [["sagemaker-safe-port-range", "string"]]),
  ...rows("the processors of instances are not chosen by policies yet", null, [["host-policy", "string"]]),
];
