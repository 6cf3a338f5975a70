/**
 * The platform stops in any step of a queued request, or its disk is full or unreadable. No accepted request is lost.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import type { AsyncEvent, AsyncReceipt } from "../src/index.ts";
import {
  DocumentMemory,
  recordedTransitionsContract,
  type RecordedTransition,
} from "../src/records/contracts/index.ts";
import type { DocumentChange } from "../src/records/index.ts";
import { AsyncFixture, paths } from "./async-fixture.ts";
import { owner } from "./hosting-fixture.ts";

const topics = {
  OutputConfig: {
    ...paths,
    NotificationConfig: {
      SuccessTopic: "arn:aws:sns:us-east-1:000000000000:good",
      ErrorTopic: "arn:aws:sns:us-east-1:000000000000:bad",
    },
  },
};

/** The state outside of the platform at a write: the objects in the store, and the locations of the results. */
interface ExternalState {
  readonly objects: Promise<ReadonlyMap<string, string>>;
  readonly ticket: AsyncReceipt | null;
}

interface Found {
  /** Number of documents of requests and of their inputs. */
  readonly requestCount: number;
  readonly result: string | null;
  readonly reported: readonly string[];
}

/** Hosting with one endpoint, `q`, and a request for it. */
class CrashFixture implements AsyncDisposable {
  readonly bench: AsyncFixture;
  ticket: AsyncReceipt | null;

  private constructor(bench: AsyncFixture, ticket: AsyncReceipt | null) {
    this.bench = bench;
    this.ticket = ticket;
  }

  static async open(documents: DocumentMemory, outside: ExternalState | null): Promise<CrashFixture> {
    const objects = await outside?.objects;
    const bench = await AsyncFixture.open({ documents, objects: objects ?? new Map<string, string>() });
    const fixture = new CrashFixture(bench, outside?.ticket ?? null);
    if (outside !== null) await fixture.release();
    return fixture;
  }

  outside(): ExternalState {
    return { objects: this.bench.objects(), ticket: this.ticket };
  }

  /** Resolves when an instance has received the request. */
  async began(): Promise<void> {
    await eventually(async () => (await runsIn(this.bench.directory).catch(() => 0)) > 0);
  }

  /** Releases requests whose first word is `hold`. */
  async release(): Promise<void> {
    await writeFile(join(this.bench.directory, "go"), "");
  }

  async found({ held }: DocumentMemory): Promise<Found> {
    const documents = [...held.values()];
    const { ticket, bench } = this;
    const output = (await bench.object(ticket?.outputUrl ?? null))?.text;
    const text = output === undefined ? undefined : (JSON.parse(output) as { readonly word: string }).word;
    const reported = documents.filter(({ kind }) => kind === "told").map(({ body }) => body);
    return {
      requestCount: documents.filter(({ kind }) => kind.startsWith("async-")).length,
      result: text ?? (await bench.object(ticket?.failureUrl ?? null))?.text.slice(0, 40) ?? null,
      reported: reported.toSorted(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bench[Symbol.asyncDispose]();
  }
}

/**
 * Returns the request of a row. The receipt is set before the request is accepted, because the platform may be killed
 * before it responds.
 */
const asking =
  (body: string, more: Parameters<AsyncFixture["call"]>[2] = {}) =>
  async (fixture: CrashFixture): Promise<void> => {
    fixture.ticket = {
      inferenceId: "x",
      outputUrl: `${paths.S3OutputPath}same`,
      failureUrl: `${paths.S3FailurePath}/same-error.out`,
    };
    await fixture.bench.call("q", body, { ...more, fileName: "same" });
  };

const runsIn = async (directory: string) => (await readFile(join(directory, "runs"), "utf8")).trim().split("\n").length;

const deploy = ({ bench }: CrashFixture) => bench.deploy("q", topics);

/** Deploys the endpoint without an instance, so that all requests wait in the queue. */
async function deployAsleep(fixture: CrashFixture): Promise<void> {
  await deploy(fixture);
  await fixture.bench.resize("q", 0);
}

const before: Found = { requestCount: 0, result: null, reported: [] };
const failed = (text: string): Found => ({ ...before, result: text.slice(0, 40), reported: ["bad Failed"] });
const responded = (text: string): Found => ({ ...before, result: text, reported: ["good Completed"] });

const rows: readonly RecordedTransition<CrashFixture, Found>[] = [
  {
    what: "it brings its input along",
    given: deploy,
    request: asking("fine"),
    end: responded("fine"),
    writesMin: 2,
  },
  {
    what: "its input is in S3",
    given: deploy,
    async request(fixture) {
      await asking("", { inputUrl: await fixture.bench.put("in", "fine") })(fixture);
    },
    end: responded("fine"),
    writesMin: 2,
  },
  {
    what: "it runs when the platform ends",
    given: deploy,
    async request(fixture) {
      await asking("hold go")(fixture);
      await fixture.began();
      await fixture.release();
    },
    end: responded("hold"),
    writesMin: 2,
  },
  {
    what: "its model refuses it",
    given: deploy,
    request: asking("fail"),
    end: failed("the model is not well"),
    writesMin: 2,
  },
  {
    what: "it ends each container that it comes to",
    given: deploy,
    request: asking("die"),
    end: failed("Received server error (503) from primary"),
    writesMin: 4,
  },
  {
    what: "it expires while there is no instance",
    given: deployAsleep,
    request: asking("fine", { ttlSeconds: 1 }),
    end: failed("The request expired: it was in the queue for longer"),
    writesMin: 2,
  },
  {
    what: "it waits until there is an instance",
    given: deployAsleep,
    async request(fixture) {
      await asking("fine")(fixture);
      await fixture.bench.resize("q", 1);
    },
    orElse: [{ ...before, requestCount: 2 }],
    end: responded("fine"),
    writesMin: 3,
  },
  {
    what: "its endpoint is deleted",
    given: deployAsleep,
    async request(fixture) {
      await asking("fine")(fixture);
      await fixture.bench.hosting.endpoints.delete("q", owner);
    },
    orElse: [{ ...before, requestCount: 2 }],
    end: failed("The endpoint was deleted before the request was processed."),
    writesMin: 3,
  },
];

recordedTransitionsContract<CrashFixture, ExternalState, Found, AsyncEvent["kind"]>({
  name: "asynchronous request",
  kinds: ["async-invocation", "endpoint"],
  open: (memory, outside) => CrashFixture.open(memory, outside),
  outside: (fixture) => fixture.outside(),
  settled: ({ bench }) => bench.settled("q"),
  found: (fixture, memory) => fixture.found(memory),
  steps: {
    taken: ["its input is in S3", "it expires while there is no instance"],
    answered: ["it brings its input along", "it waits until there is an instance"],
    refused: ["its model refuses it"],
    lost: ["it ends each container that it comes to"],
    interrupted: ["it runs when the platform ends"],
    orphaned: ["its endpoint is deleted"],
  },
  rows,
  atOnce: 4,
});

/** Documents whose reads and writes fail for a while. */
class FailingMemory extends DocumentMemory {
  /** Remaining number of failing reads of requests; `failingWrites` counts failing writes that complete a request. */
  failingReads = 0;
  failingWrites = 0;

  override find(kind: string, key: string) {
    if (kind !== "async-invocation" || this.failingReads === 0) return super.find(kind, key);
    this.failingReads -= 1;
    throw new Error("disk I/O error");
  }

  override write(changes: readonly DocumentChange[]): number {
    const isEnd = changes.some((change) => change.do === "delete" && change.kind === "async-invocation");
    if (!isEnd || this.failingWrites === 0) return super.write(changes);
    this.failingWrites -= 1;
    throw Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
  }
}

test("a disk that is full when a request ends delays its outcome and loses nothing", async () => {
  const documents = new FailingMemory();
  await using bench = await AsyncFixture.open({ documents });
  await bench.deploy("q", topics);
  documents.failingWrites = 3;
  const ticket = await bench.call("q", "fine");
  assert.equal((await bench.result(ticket)).ok, true);
  await eventually(() => bench.messages.length === 1);
  assert.equal(documents.failingWrites, 0);
  assert.equal(await runsIn(bench.directory), 1);
});

test("a record that cannot be read is retried, and one that stays unreadable is left for the next start and blocks no other", async () => {
  const documents = new FailingMemory();
  let left;
  {
    await using bench = await AsyncFixture.open({ documents });
    await bench.deploy("q", topics);
    documents.failingReads = 3;
    assert.equal((await bench.result(await bench.call("q", "fine"))).ok, true);
    assert.equal(documents.failingReads, 0);
    documents.failingReads = 6;
    left = await bench.call("q", "left");
    await eventually(() => documents.failingReads === 0);
    assert.equal((await bench.result(await bench.call("q", "fine"))).ok, true);
    assert.equal(await bench.object(left.outputUrl), null);
  }
  await using bench = await AsyncFixture.open({ documents });
  assert.match((await bench.result(left)).text, /"word":"left"/);
});
