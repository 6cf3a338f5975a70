import { startGalatea } from "../../conformance/environments/index.ts";
import { assembleRepository } from "../../examples/minilm/assemble.ts";
import { packDirectory } from "../archive.ts";
import { requestOk, timedMs } from "../send-request.ts";
import { invokeModel, loadModel, originalRoot, startOracleContainer, writeUnpacked } from "../container.ts";
import { requestBytes, runLoad, type LoadResult } from "../load.ts";
import { addSub, threeSteps } from "../models.ts";
import { invokeBytes, invokeHeaders, metricStatistics, startPlatform, warmUp, type Platform } from "../platform.ts";
import { addSubBody, pipelineBody } from "../requests.ts";
import { median, type BenchContext, type Measure } from "../row.ts";
import { temporaryDirectory, writeModels } from "../servers.ts";

const instanceType = "ml.m5.4xlarge";

/**
 * The time that the platform adds to a call of the container. One client calls the platform for some seconds and then
 * the same server with the same model at its own port, alternately. The percentiles of each round are subtracted; this
 * is not a percentile of the differences, because no call is made both ways. A delay of the machine affects only one
 * side of a round, so the median of several rounds counts.
 */
export const invokeOverheadRow = {
  name: "invoke-overhead",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using repository = await temporaryDirectory();
    await writeModels(repository.path, addSub);
    await using platform = await startPlatform(data.path);
    await platform.putArchive("one/add_sub.tar.gz", addSub);
    await platform.createMultiModelEndpoint("one", "one/", instanceType);
    await requestOk(platform.port, "POST", "/endpoints/one/invocations", addSubBody, invokeHeaders("add_sub.tar.gz"));
    const direct = await startGalatea({
      repositories: [repository.path],
      env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "add_sub" },
    });
    try {
      const timing = { durationMs: context.quick ? 500 : 4000, warmUpMs: context.quick ? 200 : 1000 };
      const call = (port: number, request: Uint8Array) => runLoad({ port, request, clients: 1, ...timing });
      const [p50, p99]: [number[], number[]] = [[], []];
      for (let round = 0; round < context.rounds; round++) {
        const through = await call(platform.port, invokeBytes("one", "add_sub.tar.gz", addSubBody));
        const alone = await call(
          direct.sagemakerPort,
          requestBytes("/invocations", addSubBody, { "content-type": "application/json" }),
        );
        p50.push((through.p50Us - alone.p50Us) / 1000);
        p99.push((through.p99Us - alone.p99Us) / 1000);
        const text = ({ p50Us, p99Us }: LoadResult) =>
          `${(p50Us / 1000).toFixed(3)} ms, p99 ${(p99Us / 1000).toFixed(3)} ms`;
        context.log(`InvokeEndpoint p50 ${text(through)}; direct p50 ${text(alone)}`);
      }
      const row = (percentile: string, ours: readonly number[], value: number): Measure => ({
        what: `InvokeEndpoint's ${percentile} minus the container's own of the same round`,
        unit: "ms",
        ours,
        oracle: [],
        goal: { kind: "at most", of: "ours", value },
      });
      return [row("p50", p50, 0.4), row("p99", p99, 2)];
    } finally {
      await direct.stop();
    }
  },
};

/** First requests for archives that are only in the object store. For Triton, the load and the invocation of an archive on its disk. */
export const coldInvocationRow = {
  name: "cold-invocation",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    const count = context.quick ? 5 : 30;
    for (let index = 0; index < count; index++) await platform.putArchive(`cold/${index}.tar.gz`, distinct(index));
    await platform.createMultiModelEndpoint("cold", "cold/", instanceType);
    await warmUp(platform);
    const times: number[] = [];
    for (let index = 0; index < count; index++) {
      times.push(await timedMs(() => invoke(platform, "cold", `${index}.tar.gz`, pipelineBody)));
    }
    // The first request to a fresh platform also starts processes that later ones share.
    context.log(
      `first ${times[0]?.toFixed(1)} ms, then ${times
        .slice(1)
        .map((time) => time.toFixed(1))
        .join(" ")}`,
    );
    for (const metric of ["ModelDownloadingTime", "ModelLoadingTime"]) {
      const { sum, count, max } = await metricStatistics(platform, "AWS/SageMaker", metric, "cold");
      const meanMs = (sum - max) / (count - 1) / 1000;
      context.log(`${metric}: longest ${(max / 1000).toFixed(1)} ms, the others ${meanMs.toFixed(1)} ms`);
    }
    return [
      {
        what: "cold multi-model invocation of three Python steps, p50",
        unit: "ms",
        ours: [median(times.slice(1))],
        oracle: [await coldAtOracle(context)],
        goal: { kind: "at most", of: "ours", value: 60 },
      },
    ];
  },
};

async function coldAtOracle(context: BenchContext): Promise<number> {
  const hashes = Array.from({ length: context.quick ? 1 : 5 }, (_, index) => `galateacold${index}`);
  await using _unpacked = await writeUnpacked(originalRoot, hashes, threeSteps);
  await using oracle = await startOracleContainer(context);
  const times: number[] = [];
  for (const hash of hashes) {
    times.push(
      await timedMs(async () => {
        await loadModel(oracle, hash);
        await invokeModel(oracle, hash, pipelineBody);
      }),
    );
  }
  return median(times);
}

/** The cost of 90 MB archives: tenants with the same weights, one after another. */
export const coldMiniLmRow = {
  name: "cold-minilm",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using repository = await temporaryDirectory();
    await assembleRepository({ packageDirectory: context.oracle.sitePackages, targetDirectory: repository.path });
    const archive = await packDirectory(repository.path);
    await using platform = await startPlatform(data.path);
    const tenants = Array.from({ length: context.quick ? 2 : 6 }, (_, index) => `${index}.tar.gz`);
    for (const tenant of tenants) await platform.putObject(`minilm/${tenant}`, archive);
    await platform.createMultiModelEndpoint("minilm", "minilm/", instanceType);
    await warmUp(platform);
    const text = { name: "TEXT", datatype: "BYTES", shape: [1, 1], data: ["a sentence"] };
    const body = Buffer.from(JSON.stringify({ inputs: [text] }));
    const times: number[] = [];
    for (const tenant of tenants) times.push(await timedMs(() => invoke(platform, "minilm", tenant, body)));
    const [first = 0, ...further] = times;
    const row = (which: string, ours: number, max: number): Measure => ({
      what: `cold multi-model invocation of a MiniLM archive: ${which}`,
      unit: "ms",
      ours: [ours],
      oracle: [],
      goal: { kind: "at most", of: "ours", value: max },
    });
    return [row("first tenant", first, 1500), row("further tenants, p50", median(further), 700)];
  },
};

/** Creates archives with different content, so that nothing is shared. */
function distinct(index: number) {
  return Object.fromEntries(
    Object.entries(threeSteps).map(([name, model]) => [name, { ...model, config: `${model.config}# ${index}\n` }]),
  );
}

const invoke = (platform: Platform, endpoint: string, target: string, body: Uint8Array) =>
  requestOk(platform.port, "POST", `/endpoints/${endpoint}/invocations`, body, invokeHeaders(target));
