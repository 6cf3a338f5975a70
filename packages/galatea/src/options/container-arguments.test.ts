import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "./flag.ts";
import { parseFlags } from "./parse-flags.ts";
import { serveFlags } from "./serve-flags.ts";
import { serveOptions } from "./serve-options.ts";

function asked(env: Record<string, string>, ...argv: string[]) {
  return serveOptions(parseFlags(["--allow-sagemaker=true", ...argv], serveFlags), env);
}

test("a container that is configured by its environment serves only the container contract", () => {
  const { allowHttp, allowGrpc, allowMetrics, container, modelControlMode } = asked({});
  assert.deepEqual([allowHttp, allowGrpc, allowMetrics, modelControlMode], [false, false, false, "explicit"]);
  assert.equal(container?.fromEnvironment, true);
});

test("environment variables enable gRPC and metrics, and change the port", () => {
  const { allowGrpc, grpcPort, allowMetrics, metricsPort, container } = asked({
    SAGEMAKER_TRITON_ALLOW_GRPC: "true",
    SAGEMAKER_TRITON_GRPC_PORT: "9001",
    SAGEMAKER_TRITON_ALLOW_METRICS: "true",
    SAGEMAKER_TRITON_METRICS_PORT: "9002",
    SAGEMAKER_BIND_TO_PORT: "9080",
  });
  assert.deepEqual([allowGrpc, grpcPort, allowMetrics, metricsPort], [true, 9001, true, 9002]);
  assert.deepEqual(container?.listen, { host: "0.0.0.0", port: 9080 });
});

test("SAGEMAKER_TRITON_ADDITIONAL_ARGS takes the flags of serve, and overrides the other variables", () => {
  const env = {
    SAGEMAKER_TRITON_LOG_VERBOSE: "false",
    SAGEMAKER_TRITON_ADDITIONAL_ARGS:
      " --log-verbose 1\t--backend-config=onnxruntime,a=b --load-model=second --model-repository=/m ",
  };
  const { logVerbose, backendConfig, loadModel, modelRepository, container } = asked(env);
  assert.equal(logVerbose, 1);
  assert.deepEqual(backendConfig, [{ backend: "onnxruntime", key: "a", value: "b" }]);
  assert.deepEqual([loadModel, modelRepository], [["second"], ["/m"]]);
  assert.equal(container?.fromEnvironment, true);
});

test("the environment cannot change flags of the command line", () => {
  const env = {
    SAGEMAKER_TRITON_ALLOW_GRPC: "true",
    SAGEMAKER_TRITON_ADDITIONAL_ARGS: "--python=/theirs --sagemaker-socket=/theirs --ml-root=/theirs",
  };
  const own = ["--python=/own", "--sagemaker-socket=/own", "--ml-root=/own", "--allow-grpc=false"];
  const { python, container, allowGrpc } = asked(env, ...own);
  assert.deepEqual(
    [python, container?.mlRoot, container?.listen, allowGrpc],
    ["/own", "/own", { socketPath: "/own" }, false],
  );
});

test("an unknown flag is rejected, and the error says that it comes from the environment", () => {
  for (const [name, value, words] of [
    ["SAGEMAKER_TRITON_ADDITIONAL_ARGS", "--log-verbos=1 --nonsense=1", "unrecognized option '--nonsense'"],
    [
      "GALATEA_PYTHON_PACKAGES",
      "-r/etc/passwd",
      "'-r/etc/passwd' in --python-packages is no package with its versions",
    ],
    ["SAGEMAKER_TRITON_ADDITIONAL_ARGS", "word", "unexpected argument 'word'"],
    ["SAGEMAKER_TRITON_GRPC_PORT", "70000", "Got 70000 for --grpc-port, expected at most 65535"],
  ] as const)
    assert.throws(
      () => asked({ [name]: value }),
      (error: unknown) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /^the container's environment: /);
        assert.ok(error.message.includes(words), error.message);
        return true;
      },
    );
});

test("a server with --model-repository ignores the container's environment", () => {
  const env = { SAGEMAKER_TRITON_ADDITIONAL_ARGS: "--nonsense" };
  assert.equal(asked(env, "--model-repository=/m").allowHttp, true);
});
