import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assembleRepository } from "../../examples/minilm/assemble.ts";
import { requestOk } from "../send-request.ts";
import { requestBytes, runLoad } from "../load.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, startPairOver, temporaryDirectory } from "../servers.ts";

const encoderProgram = fileURLToPath(new URL("../models/encoder.py", import.meta.url));
const path = "/v2/models/sentence_embedding/infer";
/** Maximum difference of an embedding's element between both servers. */
const tolerance = 1e-4;
/**
 * Warm-up before the first round. V8 finishes its last compilation tier after about 20 s of this load; until then its
 * compiler competes with the encoder for the cores.
 */
const settleMs = 25_000;

/** Six words of one token each, and the two tokens at the ends of a sentence. */
const words = ["the", "cat", "sat", "on", "the", "mat"];
const sentence = (tokenCount: number) =>
  Array.from({ length: tokenCount - 2 }, (_, index) => words[index % words.length]).join(" ");
const body = (tokenCount: number) =>
  Buffer.from(
    JSON.stringify({ inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: [sentence(tokenCount)] }] }),
  );

/** Text in, embedding out: the same ensemble, whose encoder is a Python model with the same ONNX Runtime on Triton. */
export const miniLmRow = {
  name: "minilm",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using directory = await temporaryDirectory();
    const repositories = { galatea: join(directory.path, "galatea"), oracle: join(directory.path, "oracle") };
    await assembleRepository({ packageDirectory: context.oracle.sitePackages, targetDirectory: repositories.galatea });
    await cp(repositories.galatea, repositories.oracle, { recursive: true });
    await makeEncoderPython(join(repositories.oracle, "encoder"));
    await using pair = await startPairOver(
      context,
      repositories,
      { galateaFlags: [`--python=${context.oracle.python}`] },
      async () => {},
    );
    await compareEmbeddings(pair.galatea.httpPort, pair.oracle.httpPort);
    if (!context.quick)
      for (const server of [pair.galatea, pair.oracle])
        await runLoad({
          port: server.httpPort,
          request: requestBytes(path, body(8)),
          clients: 8,
          durationMs: settleMs,
          warmUpMs: 0,
        });
    const measures: Measure[] = [];
    for (const [tokens, value] of [
      [8, 1.3],
      [64, 1.05],
    ] as const) {
      const request = requestBytes(path, body(tokens));
      const figures = await alternate(context, pair, `${tokens} tokens`, async (server) => {
        const load = { clients: 8, durationMs: context.quick ? 1000 : 5000, warmUpMs: context.quick ? 300 : 5000 };
        const result = await runLoad({ port: server.httpPort, request, ...load });
        return result.perSecond;
      });
      measures.push({
        what: `MiniLM, text to embedding, ${tokens} tokens: throughput at 8`,
        unit: "/s",
        ...figures,
        goal: { kind: "at least", of: "ratio", value },
      });
    }
    return measures;
  },
};

async function makeEncoderPython(directory: string): Promise<void> {
  const config = join(directory, "config.pbtxt");
  const text = await readFile(config, "utf8");
  await writeFile(config, text.replace('platform: "onnxruntime_onnx"', 'backend: "python"'));
  await cp(encoderProgram, join(directory, "1", "model.py"));
}

async function compareEmbeddings(...ports: readonly number[]): Promise<void> {
  const [ours = [], theirs = []] = await Promise.all(
    ports.map(async (port) => {
      const response = JSON.parse((await requestOk(port, "POST", path, body(8))).toString("utf8")) as {
        outputs: { data: number[] }[];
      };
      return response.outputs[0]?.data ?? [];
    }),
  );
  const apart = Math.max(...ours.map((value, index) => Math.abs(value - (theirs[index] ?? Number.NaN))));
  if (ours.length !== 384 || !(apart <= tolerance)) throw new Error(`the embeddings are ${apart} apart`);
}
