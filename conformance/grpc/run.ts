/**
 * Tests gRPC with clients written in Go: `npm run conformance:grpc`. They are gRPC's own interop client (plain and over
 * TLS), grpcurl with reflection, and ghz as a load. Needs Go, which builds them once. The exit code is 1 if anything
 * differs.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import { cacheDirectory, ensureTool, NoGo } from "../environments/index.ts";
import { startFixture } from "../kserve/started-fixture.ts";
import { serverTls, writeIdentity } from "./identities.ts";
import { interopCases } from "./interop-cases.ts";
import { openInteropService } from "./interop-service.ts";

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const toolNames = ["grpcurl", "ghz", "interop"] as const;

type Tools = Readonly<Record<(typeof toolNames)[number], string>>;

const toolTimeoutMs = 60_000;
const loadCount = 2000;
const tensor = (name: string) => ({
  name,
  datatype: "FP32",
  shape: [4],
  contents: { fp32_contents: [1, 2, 3, 4] },
});
const inference = JSON.stringify({ model_name: "add_sub", inputs: [tensor("INPUT0"), tensor("INPUT1")] });
const inferMethod = "inference.GRPCInferenceService/ModelInfer";

try {
  process.exitCode = await run();
} catch (error) {
  if (!(error instanceof NoGo)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

async function run(): Promise<number> {
  const cache = cacheDirectory(process.env);
  const paths = await Promise.all(toolNames.map(async (name) => [name, await ensureTool(cache, name)] as const));
  const tools = Object.fromEntries(paths) as Tools;
  const wrong = [...(await askInterop(tools)), ...(await askServer(tools))];
  for (const each of wrong) console.log(`DIFFERS ${each}`);
  if (wrong.length === 0)
    console.log(`${interopCases.length} interop cases, plain and over TLS, grpcurl and ghz agree`);
  return wrong.length === 0 ? 0 : 1;
}

async function askInterop({ interop }: Tools): Promise<string[]> {
  const wrong: string[] = [];
  const directory = await mkdtemp(join(tmpdir(), "galatea-interop-"));
  try {
    const server = await writeIdentity(directory, "server", "localhost");
    const trust = ["--use_tls", "--use_test_ca", `--ca_file=${server.certificate}`, "--server_host_override=localhost"];
    for (const [kind, listenerTls, flags] of [
      ["plain", null, []],
      ["TLS", serverTls(server), trust],
    ] as const) {
      const listener = await openInteropService(listenerTls);
      for (const name of interopCases) {
        const args = ["--server_host=127.0.0.1", `--server_port=${listener.port}`, `--test_case=${name}`, ...flags];
        const failure = await outputOf(interop, args).then(
          () => null,
          (error: unknown) => String(error),
        );
        if (failure !== null) wrong.push(`interop ${name}, ${kind}: ${failure}`);
      }
      await listener.close(AbortSignal.abort());
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return wrong;
}

async function askServer({ grpcurl, ghz }: Tools): Promise<string[]> {
  const fixture = await startFixture({ kind: "galatea" }, "control");
  const wrong: string[] = [];
  const expect = (what: string, got: unknown, expected: unknown) => {
    if (!isDeepStrictEqual(got, expected)) wrong.push(`${what}: ${JSON.stringify(got)}`);
  };
  try {
    const address = `127.0.0.1:${fixture.server.grpcPort}`;
    const curl = (...args: string[]) => outputOf(grpcurl, ["-plaintext", ...args]);
    expect("grpcurl list", (await curl(address, "list")).trimEnd().split("\n"), [
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "inference.GRPCInferenceService",
    ]);
    const methods = await curl(address, "list", "inference.GRPCInferenceService");
    expect("grpcurl knows ModelStreamInfer", methods.includes("ModelStreamInfer"), true);
    expect("grpcurl health", JSON.parse(await curl(address, "grpc.health.v1.Health/Check")), { status: "SERVING" });
    const response = JSON.parse(await curl("-d", inference, address, inferMethod)) as { rawOutputContents: string[] };
    const sum = Buffer.from(response.rawOutputContents[0] ?? "", "base64");
    expect("grpcurl ModelInfer", [...new Float32Array(new Uint8Array(sum).buffer)], [2, 4, 6, 8]);
    const refused = await curl("-d", '{"model_name":"nobody"}', address, inferMethod).catch(String);
    expect("grpcurl's error", refused.includes("Code: NotFound"), true);
    const load = ["--insecure", `--call=${inferMethod}`, "-d", inference, "-c", "32", "--connections=4"];
    const report = await outputOf(ghz, [...load, "-n", String(loadCount), "-O", "json", address]);
    const { statusCodeDistribution } = JSON.parse(report) as { statusCodeDistribution: unknown };
    expect("ghz", statusCodeDistribution, { OK: loadCount });
  } finally {
    await fixture.stop();
  }
  return wrong;
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { timeout: toolTimeoutMs, maxBuffer: 64 << 20 });
  return stdout;
}
