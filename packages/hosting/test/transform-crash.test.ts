/**
 * The platform is killed after any write of a transform job. The next run continues the job, and every recorded output
 * exists.
 */
import { ByteBudget } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import type { TransformEvent, TransformRequest } from "../src/index.ts";
import {
  recordedTransitionsContract,
  type DocumentMemory,
  type RecordedTransition,
} from "../src/records/contracts/index.ts";
import { input, TransformFixture } from "./transforms-fixture.ts";

const name = "job";

/** The content of the bucket at the time of a write. */
type ExternalState = Promise<ReadonlyMap<string, string>>;

interface Found {
  readonly status: string | null;
  readonly outputs: string;
  readonly directoryCount: number;
  readonly documents: string;
}

async function found(bench: TransformFixture, { held }: DocumentMemory): Promise<Found> {
  const job = await bench.hosting.transforms.find(name).catch(() => null);
  const outputs = (await bench.keys("out/")).map(async (key) => `${key}=${await bench.get(key)}`);
  const kinds = [...held.values()].map(({ kind }) => kind).filter((kind) => kind.startsWith("transform-"));
  return {
    status: job?.state.at ?? null,
    outputs: (await Promise.all(outputs)).join(),
    directoryCount: await bench.directoryCount(),
    documents: kinds.toSorted().join(),
  };
}

/** Resolves when the job has ended, or when its container has received a request to which it does not respond. */
async function settled(bench: TransformFixture): Promise<void> {
  await eventually(async () => {
    const job = await bench.hosting.transforms.find(name).catch(() => null);
    if (job?.state.at !== "InProgress" && job?.state.at !== "Stopping") return true;
    return bench.asked(name).some(({ text }) => text === "hang");
  });
}

const ended = (status: string, outputs = ""): Found => {
  return { status, outputs, directoryCount: 0, documents: "transform-job,transform-progress" };
};
const unbegun = (status: string): Found => ({ ...ended(status), documents: "transform-job" });

async function objects(bench: TransformFixture): Promise<void> {
  for (const key of ["a", "b", "c"]) await bench.put(`in/${key}`, `${key}1\n${key}2\n`);
}

const begin =
  (does: string, more: Partial<TransformRequest> = {}) =>
  (bench: TransformFixture) =>
    bench.begin(name, does, more);

const all = "out/a.out=A1\nA2,out/b.out=B1\nB2,out/c.out=C1\nC2";

const rows: readonly RecordedTransition<TransformFixture, Found>[] = [
  {
    what: "it is created, and completes",
    given: objects,
    request: begin("upper"),
    end: ended("Completed", all),
    writesMin: 6,
  },
  {
    what: "objects go through it line by line and side by side",
    given: objects,
    request: begin("upper", {
      BatchStrategy: "SingleRecord",
      MaxConcurrentTransforms: 3,
      TransformInput: input({ SplitType: "Line" }),
    }),
    end: ended("Completed", "out/a.out=A1A2,out/b.out=B1B2,out/c.out=C1C2"),
    writesMin: 4,
  },
  {
    what: "one object of it fails",
    async given(bench) {
      await objects(bench);
      await bench.put("in/b", "bad");
    },
    request: begin("upper"),
    end: ended("Failed", "out/a.out=A1\nA2,out/c.out=C1\nC2"),
    writesMin: 5,
  },
  {
    what: "its container does not start",
    given: objects,
    request: (bench) => bench.begin(name, "upper", {}, "", [{ Environment: { DOES: "breaks" } }]),
    end: unbegun("Failed"),
    writesMin: 2,
  },
  {
    what: "it is stopped while it runs",
    async given(bench) {
      await bench.put("in/a", "hang");
      await begin("hang")(bench);
    },
    request: (bench) => bench.hosting.transforms.stop(name),
    end: unbegun("Stopped"),
    writesMin: 2,
  },
  {
    what: "it is stopped before it runs",
    given: (bench) => bench.put("in/a", "hang"),
    async request(bench) {
      await begin("hang")(bench);
      await bench.hosting.transforms.stop(name);
    },
    orElse: [{ ...unbegun("InProgress"), directoryCount: 1 }],
    end: unbegun("Stopped"),
    writesMin: 2,
  },
];

recordedTransitionsContract<TransformFixture, ExternalState, Found, TransformEvent["kind"]>({
  name: "transform job",
  kinds: ["transform-job", "transform-progress"],
  open: async (memory, outside) =>
    await TransformFixture.open(new ByteBudget(2 ** 30), memory, (await outside) ?? new Map<string, string>()),
  outside: (bench) => bench.objects(),
  settled,
  found,
  steps: {
    started: ["objects go through it line by line and side by side"],
    completed: ["it is created, and completes"],
    failed: ["one object of it fails", "its container does not start"],
    stop: ["it is stopped while it runs"],
    stopped: ["it is stopped before it runs"],
  },
  rows,
  atOnce: 4,
});
