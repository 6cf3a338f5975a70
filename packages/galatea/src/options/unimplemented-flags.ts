import { booleanFlag, integerFlag, listFlag, textFlag, unimplementedFlag, type Flag } from "./flag.ts";

const text = textFlag({ about: "" });
const texts = listFlag({ about: "" });
const integer = integerFlag({ about: "" });
const boolean = booleanFlag({ about: "" });

const vertex = "there is no Vertex AI front end";
const trace = (value: Flag, ...harmless: readonly unknown[]) =>
  unimplementedFlag("traces come with a later release", value, harmless);
const cache = (value: Flag, ...harmless: readonly unknown[]) =>
  unimplementedFlag("the response cache comes with a later release", value, harmless);
const rateLimit = (...harmless: readonly unknown[]) =>
  unimplementedFlag("the rate limiter comes with a later release; instances run when they are free", text, harmless);
const reusePort = unimplementedFlag("one process owns a port", boolean, [false]);

/**
 * tritonserver's flags of features that are not implemented, each with the values that leave the feature disabled. Only
 * these values are accepted.
 */
export const unimplementedFlags = {
  "allow-vertex-ai": unimplementedFlag(vertex, boolean, [false]),
  "vertex-ai-port": unimplementedFlag(vertex, integer, [8080], "allow-vertex-ai"),
  "vertex-ai-thread-count": unimplementedFlag(vertex, integer, [8], "allow-vertex-ai"),
  "vertex-ai-default-model": unimplementedFlag(vertex, text, [""], "allow-vertex-ai"),
  "trace-config": trace(texts, "level=OFF", "rate=1000", "count=-1", "mode=triton", "triton,log-frequency=0"),
  "trace-level": trace(texts, "OFF"),
  "trace-file": trace(text, ""),
  "trace-rate": trace(integer, 1000),
  "trace-count": trace(integer, -1),
  "trace-log-frequency": trace(integer, 0),
  "cache-config": cache(texts),
  "response-cache-byte-size": cache(integer, 0),
  "rate-limit": rateLimit("off"),
  "rate-limit-resource": rateLimit(),
  "metrics-config": unimplementedFlag(
    "summaries and histograms of latencies come with a later release; counters are there",
    texts,
    ["counter_latencies=true", "summary_latencies=false", "histogram_latencies=false"],
  ),
  "repository-poll-secs": unimplementedFlag(
    "polling comes with a later release; use --model-control-mode=explicit",
    integer,
    [15],
  ),
  "model-namespacing": unimplementedFlag("only archives of a multi-model endpoint have namespaces", boolean, [false]),
  "model-load-retry-count": unimplementedFlag("a failed load is not repeated; load the model again", integer, [0]),
  "reuse-http-port": reusePort,
  "reuse-grpc-port": reusePort,
  "allow-client-shm": unimplementedFlag("client shared memory comes with a later release", boolean, [false]),
  "sagemaker-safe-port-range": unimplementedFlag("give the ports one by one", text, []),
  "host-policy": unimplementedFlag("instances cannot be bound to processors yet", text, []),
};
