import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts, runGalatea, runOracle } from "../environments/index.ts";
import { controlModels } from "./control-models.ts";
import { models } from "./models.ts";
import { writeRepository } from "./repository.ts";
import type { Target } from "./started-fixture.ts";

/** A start that ends by itself: its flags, and the compared properties of the end. */
export interface CommandLineCase {
  readonly name: string;
  readonly flags: readonly string[];
  /**
   * `none`: no repository is given. `broken`: one of its models cannot be loaded. `missing`: the directory does not exist.
   * `doubled`: two repositories hold the same model. `model`: the directory of one model.
   */
  readonly repository: "none" | "good" | "broken" | "missing" | "doubled" | "model";
  readonly exitCode: number;
  /** Our exit code if a row of supported.md documents the difference. */
  readonly oursExitCode?: number;
  /** A text that occurs in an output stream of both servers. */
  readonly says: string;
}

export const commandLineCases: readonly CommandLineCase[] = [
  { name: "no repository", flags: [], repository: "none", exitCode: 1, says: "--model-repository must be specified" },
  {
    name: "a repository that does not exist",
    flags: [],
    repository: "missing",
    exitCode: 1,
    says: "failed to stat file",
  },
  {
    name: "a model that cannot be loaded",
    flags: [],
    repository: "broken",
    exitCode: 1,
    says: "failed to load all models",
  },
  {
    name: "a model in two repositories",
    flags: [],
    repository: "doubled",
    exitCode: 1,
    says: "failed to load all models",
  },
  { name: "the directory of a model", flags: [], repository: "model", exitCode: 1, says: "creating server: " },
  { name: "an unknown flag", flags: ["--no-such-flag=1"], repository: "good", exitCode: 1, says: "no-such-flag" },
  { name: "a bool that is none", flags: ["--strict-readiness=maybe"], repository: "good", exitCode: 1, says: "maybe" },
  {
    name: "an unknown control mode",
    flags: ["--model-control-mode=sometimes"],
    repository: "good",
    exitCode: 1,
    says: "model-control-mode",
  },
  {
    name: "load-model without explicit mode",
    flags: ["--load-model=add_sub"],
    repository: "good",
    exitCode: 1,
    says: "--load-model",
  },
  {
    name: "load-model of an unknown model",
    flags: ["--model-control-mode=explicit", "--load-model=nobody"],
    repository: "good",
    exitCode: 1,
    says: "failed to load all models",
  },
  {
    name: "flags that state their defaults, on the way to a model that cannot be loaded",
    flags: [
      "--strict-model-config=false",
      "--rate-limit=off",
      "--model-namespacing=false",
      "--reuse-http-port=false",
      "--reuse-grpc-port=false",
      "--allow-vertex-ai=false",
      "--model-load-retry-count=0",
      "--metrics-config=summary_latencies=false",
      "--metrics-config=counter_latencies=true",
      "--trace-config=level=OFF",
      "--trace-rate=1000",
      "--trace-count=-1",
      "--trace-log-frequency=0",
      "--repository-poll-secs=15",
      "--http-header-forward-pattern=",
      "--grpc-infer-allocation-pool-size=8",
      "--grpc-keepalive-time=7200000",
      "--enable-peer-access=true",
      "--buffer-manager-thread-count=0",
      "--min-supported-compute-capability=6.0",
      "--model-load-gpu-limit=0:0.8",
    ],
    repository: "broken",
    exitCode: 1,
    says: "failed to load all models",
  },
  {
    name: "settings of a front end that is switched off",
    flags: ["--allow-grpc=false", "--grpc-use-ssl=false", "--grpc-infer-response-compression-level=none"],
    repository: "broken",
    exitCode: 1,
    says: "failed to load all models",
  },
  {
    name: "an abbreviated flag",
    flags: ["--exit-on=true"],
    repository: "broken",
    exitCode: 1,
    says: "failed to load all models",
  },
  {
    name: "an ambiguous abbreviation",
    flags: ["--log-f=default"],
    repository: "good",
    exitCode: 1,
    says: "option '--log-f=default' is ambiguous",
  },
  { name: "help", flags: ["--help"], repository: "none", exitCode: 1, oursExitCode: 0, says: "--model-repository" },
];

export interface CommandLineResult {
  readonly exitCode: number | null;
  readonly said: boolean;
  readonly output: string;
}

/** Returns the expected exit code of a start. */
export const expectedExitCode = (target: Target, item: CommandLineCase) =>
  target.kind === "galatea" ? (item.oursExitCode ?? item.exitCode) : item.exitCode;

export async function runCommandLine(target: Target, item: CommandLineCase): Promise<CommandLineResult> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-kserve-start-"));
  try {
    if (item.repository === "good" || item.repository === "model")
      await writeRepository(directory, { add_sub: models.add_sub });
    if (item.repository === "broken") {
      await writeRepository(directory, { add_sub: models.add_sub, raises: controlModels.raises_in_initialize });
    }
    const doubles = [join(directory, "one"), join(directory, "two")];
    if (item.repository === "doubled") {
      for (const double of doubles) await writeRepository(double, { add_sub: models.add_sub });
    }
    const paths: Readonly<Record<CommandLineCase["repository"], readonly string[]>> = {
      none: [],
      good: [directory],
      broken: [directory],
      missing: [join(directory, "nowhere")],
      doubled: doubles,
      model: [join(directory, "add_sub")],
    };
    const [httpPort, metricsPort, grpcPort] = await freePorts(3);
    const args = [
      ...paths[item.repository].map((path) => `--model-repository=${path}`),
      `--http-port=${httpPort}`,
      `--metrics-port=${metricsPort}`,
      `--grpc-port=${grpcPort}`,
      ...item.flags,
    ];
    const result = target.kind === "oracle" ? await runOracle(target.environment, args) : await runGalatea(args);
    const output = `${result.stdout}${result.stderr}`;
    return { exitCode: result.exitCode, said: output.includes(item.says), output: output.slice(-3000) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
