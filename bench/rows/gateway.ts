import { runLoad } from "../load.ts";
import { addSub } from "../models.ts";
import { invocationBytes, signedInvocationBytes, startPlatform, type Platform } from "../platform.ts";
import { processCpuUs } from "../processes.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const endpoint = "one";
const clients = 32;
/** Number of requests that are signed before the measurement and then sent in sequence. No two of them have the same signature. */
const signedCount = 10_000;

/**
 * Number of small requests that the platform forwards in a second of its own CPU time. CPU time of the client and the
 * container is excluded; on more than two cores, they have cores of their own.
 */
export const gatewayRow = {
  name: "gateway",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using openData = await temporaryDirectory();
    await using signedData = await temporaryDirectory();
    await using open = await deploy(openData.path, false);
    await using verifying = await deploy(signedData.path, true);
    const plain = invocationBytes(endpoint, addSubBody);
    const rate = async (platform: Platform, request: () => Uint8Array) => {
      const timing = { durationMs: context.quick ? 500 : 4000, warmUpMs: 0 };
      const before = await processCpuUs(platform.pid);
      const { responses } = await runLoad({ port: platform.port, request, clients, ...timing });
      return (responses * 1e6) / ((await processCpuUs(platform.pid)) - before);
    };
    await rate(open, () => plain);
    await rate(verifying, signedInTurn(verifying.port));
    const [unsigned, signed]: [number[], number[]] = [[], []];
    for (let round = 0; round < context.rounds; round++) {
      unsigned.push(await rate(open, () => plain));
      signed.push(await rate(verifying, signedInTurn(verifying.port)));
      context.log(`a processor second: ${unsigned.at(-1)?.toFixed(0)}, with signatures ${signed.at(-1)?.toFixed(0)}`);
    }
    return [
      {
        what: "InvokeEndpoint of small requests in a second of the platform's processor time",
        unit: "/s",
        ours: unsigned,
        oracle: [],
        goal: { kind: "at least", of: "ours", value: 8000 },
      },
      {
        what: "the same with signatures that are verified, beside without",
        unit: "/s",
        ours: signed,
        oracle: unsigned,
        goal: { kind: "at least", of: "ratio", value: 0.7 },
      },
    ];
  },
};

async function deploy(path: string, verifies: boolean): Promise<Platform> {
  const platform = await startPlatform(path, { verifies });
  await platform.putArchive("one/add_sub.tar.gz", addSub);
  await platform.createPipeline(endpoint, [{ key: "one/add_sub.tar.gz", environment: {} }]);
  return platform;
}

/** Signed for the present: each request has another time and another number of spaces in its body. */
function signedInTurn(port: number): () => Uint8Array {
  const nowMs = Date.now();
  const text = addSubBody.toString();
  const requests = Array.from({ length: signedCount }, (_, index) => {
    const body = Buffer.from(text + " ".repeat(Math.floor(index / 100)));
    return signedInvocationBytes(port, endpoint, body, nowMs - (index % 100) * 1000);
  });
  let next = 0;
  return () => requests[next++ % signedCount] ?? new Uint8Array();
}
