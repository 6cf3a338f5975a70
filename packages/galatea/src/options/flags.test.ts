import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "./parse-flags.ts";
import type { Flag } from "./flag.ts";
import { serveFlags } from "./serve-flags.ts";
import { serveOptions } from "./serve-options.ts";
import { unimplementedFlags } from "./unimplemented-flags.ts";
import { upFlags, upOptions } from "./up-flags.ts";

test("--log-verbose takes a level, and true and false in any case, as tritonserver's ParseIntBoolOption does", () => {
  const verbose = (text: string) => parseFlags([`--log-verbose=${text}`], serveFlags).options.logVerbose;
  assert.deepEqual(["true", "FALSE", "0", "2"].map(verbose), [1, 0, 0, 2]);
  for (const text of ["yes", "constructor"])
    assert.throws(() => verbose(text), {
      message: `Invalid option value. Got ${text} for --log-verbose, expected an integer`,
    });
});

test("port 65535 is accepted, and 65536 is rejected", () => {
  const port = (text: string) => parseFlags([`--metrics-port=${text}`], serveFlags).options.metricsPort;
  assert.equal(port("65535"), 65535);
  assert.throws(() => port("65536"), /expected at most 65535$/);
});

const serve = (...argv: string[]) => serveOptions(parseFlags(["--model-repository=/r", ...argv], serveFlags), {});

test("a flag of a feature that is not implemented is accepted with each value that leaves the feature off", () => {
  for (const word of [
    "--vertex-ai-port=8080",
    "--vertex-ai-default-model=",
    "--trace-config=level=OFF",
    "--trace-config=mode=triton",
    "--trace-rate=1000",
    "--trace-count=-1",
    "--response-cache-byte-size=0",
    "--rate-limit=off",
    "--metrics-config=counter_latencies=true",
    "--repository-poll-secs=15",
    "--reuse-http-port=FALSE",
  ]) {
    const [name = "", ...value] = word.split("=");
    serve(word, name, value.join("="));
  }
});

test("a flag of a feature that is not implemented is rejected with any other value; the error names flag and value", () => {
  for (const [name, { placeholder }] of Object.entries(unimplementedFlags)) {
    const value = placeholder === "N" ? "7" : placeholder === "TEXT" ? "other" : "true";
    assert.throws(() => serve(`--${name}=${value}`), {
      name: "UsageError",
      message: new RegExp(`^option '--${name}=${value}' is recognized but not implemented: `),
    });
  }
  assert.throws(() => serve("--metrics-config=summary_latencies=false", "--metrics-config=summary_latencies=true"), {
    message: /^option '--metrics-config=summary_latencies=true' is recognized but not implemented: /,
  });
});

test("settings of a disabled front end have no effect, at any position of the disabling flag", () => {
  assert.equal(serve("--grpc-port=9001", "--allow-grpc=false", "--grpc-use-ssl=true").allowGrpc, false);
  serve("--vertex-ai-port=9000", "--allow-vertex-ai=false");
  assert.throws(() => serve("--vertex-ai-port=9000"), /'--vertex-ai-port=9000' is recognized but/);
});

test("the gRPC front end has tritonserver's defaults", () => {
  const options = serve();
  assert.deepEqual(
    [options.allowGrpc, options.grpcAddress, options.grpcPort, options.grpcUseSsl, options.grpcHeaderForwardPattern],
    [true, "0.0.0.0", 8001, false, null],
  );
  assert.equal(options.grpcInferResponseCompressionLevel, "none");
  assert.equal(options.grpcRestrictedProtocol.size, 0);
  assert.deepEqual(
    [options.grpcKeepaliveTime, options.grpcKeepaliveTimeout, options.grpcHttp2MaxPingStrikes],
    [7_200_000, 20_000, 2],
  );
});

test("gRPC over TLS is rejected without its certificate and key files", () => {
  assert.throws(() => serve("--grpc-use-ssl=true"), { message: "gRPC over TLS needs --grpc-server-cert" });
  const files = ["--grpc-server-cert=c", "--grpc-server-key=k"];
  assert.throws(() => serve("--grpc-use-ssl-mutual=true", ...files), {
    message: "gRPC over TLS needs --grpc-root-cert",
  });
  const { grpcServerCert, grpcServerKey } = serve("--grpc-use-ssl=true", ...files);
  assert.deepEqual([grpcServerCert, grpcServerKey], ["c", "k"]);
});

test("a standby with agents is rejected without --platform-url, because another platform's own address would replace the instances", () => {
  const up = (...flags: string[]) => upOptions(parseFlags(flags, upFlags));
  const tls = ["--agent-tls-cert=c", "--agent-tls-key=k", "--agent-tls-ca=a"];
  const shared = ["--standby", "--records=postgres://db.example/galatea", "--objects=https://s3.example", ...tls];
  assert.throws(() => up(...shared, "--agent=a=https://a.example:8780"), {
    message:
      "--standby and --agent need --platform-url: an address of all platforms, at which model code reaches the one that leads",
  });
  assert.equal(up(...shared, "--agent=a=https://a.example:8780", "--platform-url=http://p.example").standby, true);
});

test("each protocol name may be in only one group of restricted protocols", () => {
  const { httpRestrictedApi, grpcRestrictedProtocol } = serve(
    "--http-restricted-api=health,metadata:k=v=w",
    "--grpc-restricted-protocol=inference:k=v",
    "--grpc-restricted-protocol=trace:k2=",
  );
  assert.deepEqual(httpRestrictedApi.get("metadata"), { header: "k", value: "v=w" });
  assert.deepEqual(grpcRestrictedProtocol.get("trace"), { header: "triton-grpc-protocol-k2", value: "" });
  const wrong = [
    ["--http-restricted-api=health:k=v", "--http-restricted-api=health:l=w"],
    ["--http-restricted-api=nothing:k=v"],
    ["--http-restricted-api=health"],
  ];
  for (const flags of wrong) assert.throws(() => serve(...flags), { name: "UsageError" });
});

test("--strict-model-config is the older name of --disable-auto-complete-config", () => {
  assert.equal(serve().autoComplete, true);
  assert.equal(serve("--strict-model-config=false").autoComplete, true);
  assert.equal(serve("--strict-model-config=true").autoComplete, false);
  assert.equal(serve("--strict-model-config=false", "--disable-auto-complete-config").autoComplete, false);
});

test("a flag may be abbreviated to an unambiguous prefix, as in getopt", () => {
  assert.deepEqual(parseFlags(["--model-repo=/a", "--model-store", "/b"], serveFlags).options.modelRepository, [
    "/a",
    "/b",
  ]);
  serve("--cache-dir=/somewhere");
  assert.throws(() => serve("--log-i", "maybe"), { message: "invalid value for bool option: maybe" });
  assert.throws(() => serve("--log-f=x"), {
    message: "option '--log-f=x' is ambiguous; possibilities: '--log-format' '--log-file'",
  });
  for (const word of ["--", "--=", "--nonesuch"]) {
    assert.throws(() => serve(word), {
      message: new RegExp(`^unrecognized option '--${word === "--nonesuch" ? "nonesuch" : ""}'`),
    });
  }
});

test("every flag of tritonserver is known", () => {
  const names = new Set(Object.entries<Flag>(serveFlags).flatMap(([name, { alias = name }]) => [name, alias]));
  assert.deepEqual(
    tritonFlags.filter((name) => !names.has(name)),
    [],
  );
});

/** The flags that `tritonserver --help` of release 2.51 lists, and flags of later releases. */
const tritonFlags = `
  id exit-timeout-secs log-verbose log-info log-warning log-error log-format log-file model-store model-repository exit-on-error disable-auto-complete-config strict-readiness model-control-mode repository-poll-secs load-model model-config-name model-load-thread-count model-load-retry-count model-namespacing enable-peer-access allow-http http-address http-port reuse-http-port http-header-forward-pattern http-thread-count http-restricted-api allow-grpc grpc-address grpc-port reuse-grpc-port grpc-header-forward-pattern grpc-infer-allocation-pool-size grpc-use-ssl grpc-use-ssl-mutual grpc-server-cert grpc-server-key grpc-root-cert grpc-infer-response-compression-level grpc-keepalive-time grpc-keepalive-timeout grpc-keepalive-permit-without-calls grpc-http2-max-pings-without-data grpc-http2-min-recv-ping-interval-without-data grpc-http2-max-ping-strikes grpc-max-connection-age grpc-max-connection-age-grace grpc-restricted-protocol allow-sagemaker sagemaker-port sagemaker-safe-port-range sagemaker-thread-count allow-vertex-ai vertex-ai-port vertex-ai-thread-count vertex-ai-default-model allow-metrics allow-gpu-metrics allow-cpu-metrics metrics-address metrics-port metrics-interval-ms metrics-config trace-config backend-directory backend-config repoagent-directory cache-config cache-directory rate-limit rate-limit-resource pinned-memory-pool-byte-size cuda-memory-pool-byte-size cuda-virtual-address-size min-supported-compute-capability buffer-manager-thread-count host-policy model-load-gpu-limit strict-model-config response-cache-byte-size trace-file trace-level trace-rate trace-count trace-log-frequency grpc-infer-thread-count grpc-max-response-pool-size allow-client-shm http-max-input-size
`
  .trim()
  .split(/\s+/);
