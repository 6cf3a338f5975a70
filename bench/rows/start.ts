import { startGalatea, startOracle, type RunningServer } from "../../conformance/environments/index.ts";
import { timedMs } from "../send-request.ts";
import { manyAddSub } from "../models.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory, writeModels } from "../servers.ts";

/** Time until the start lines are printed, when the server accepts requests. */
async function timeStarts(context: BenchContext, repository: string, flags: readonly string[]) {
  const ours: number[] = [];
  const oracle: number[] = [];
  const options = { repositories: [repository], flags };
  const timed = async (figures: number[], start: () => Promise<RunningServer>) => {
    let server: RunningServer | undefined;
    figures.push(await timedMs(async () => (server = await start())));
    await server?.stop();
  };
  for (let round = 0; round < context.rounds; round++) {
    await timed(ours, () => startGalatea(options));
    await timed(oracle, () => startOracle(context.oracle, options));
    context.log(`start, round ${round + 1}: ${ours.at(-1)?.toFixed(0)} ms, oracle ${oracle.at(-1)?.toFixed(0)} ms`);
  }
  return { ours, oracle };
}

export const startEmptyRow = {
  name: "start-empty",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using repository = await temporaryDirectory();
    const figures = await timeStarts(context, repository.path, []);
    return [
      {
        what: "start to ready, empty repository",
        unit: "ms",
        ...figures,
        goal: { kind: "at most", of: "ours", value: 400 },
      },
    ];
  },
};

export const startFiftyRow = {
  name: "start-50",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using repository = await temporaryDirectory();
    const count = context.quick ? 5 : 50;
    await writeModels(repository.path, manyAddSub(count));
    const figures = await timeStarts({ ...context, rounds: Math.min(context.rounds, 3) }, repository.path, []);
    return [
      {
        what: `start with ${count} small Python models`,
        unit: "ms",
        ...figures,
        goal: { kind: "at most", of: "ratio", value: 0.1 },
      },
    ];
  },
};
