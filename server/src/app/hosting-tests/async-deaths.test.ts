/** A platform that ends, or whose disk is full, in any step of a queued request's life: nothing that was accepted is lost. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { eventually } from "../../base/eventually-fixture.ts";
import { DocumentMemory } from "../../records/contracts/index.ts";
import { AsyncBench, bucket } from "./async-fixture.ts";

/** Documents that remember how they were when a write began that ends a queued request, and may refuse it. */
class RememberedMemory extends DocumentMemory {
  readonly ending: DocumentMemory[] = [];
  /** Of so many writes that end a request. */
  refusalCount = 0;

  constructor() {
    super();
    const { held } = this;
    const remove = held.delete.bind(held);
    let before = copyOf(this);
    let version = 0;
    // The first that a write changes.
    Object.defineProperty(this, "version", {
      get: () => version,
      set: (next: number) => {
        before = copyOf(this);
        version = next;
      },
    });
    held.delete = (id) => {
      if (!id.includes("async-invocation")) return remove(id);
      if (this.refusalCount > 0) {
        this.refusalCount -= 1;
        throw Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
      }
      this.ending.push(before);
      return remove(id);
    };
  }
}

function copyOf({ held, version }: DocumentMemory): DocumentMemory {
  const copy = new DocumentMemory();
  for (const [id, document] of held) copy.held.set(id, document);
  copy.version = version;
  return copy;
}

const hasRequests = ({ held }: DocumentMemory) => [...held.values()].some(({ kind }) => kind.startsWith("async-"));

async function temporary(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "gal-deaths-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const runsIn = async (directory: string) => (await readFile(join(directory, "runs"), "utf8")).trim().split("\n").length;

const asked: readonly {
  readonly what: string;
  readonly body: string;
  readonly isFromS3: boolean;
  readonly ok: boolean;
}[] = [
  { what: "an input in S3", body: "fine", isFromS3: true, ok: true },
  { what: "an input of its own", body: "fine", isFromS3: false, ok: true },
  { what: "a model that fails", body: "fail", isFromS3: false, ok: false },
];

for (const { what, body, isFromS3, ok } of asked) {
  test(`a platform that ends in any step of a request with ${what} is followed by one that brings it to its end, once where it was told`, async (t) => {
    const directory = await temporary(t);
    const documents = new RememberedMemory();
    let ticket;
    {
      await using bench = await AsyncBench.open({ documents, directory });
      await bench.deploy("q");
      const inputUrl = isFromS3 ? await bench.put("in", body) : null;
      ticket = await bench.ask("q", body, { inputUrl, inferenceId: "same" });
      assert.equal((await bench.result(ticket)).ok, ok);
      await eventually(() => !hasRequests(documents));
    }
    assert.equal(documents.ending.length, 1);
    for (const memory of [...documents.ending, copyOf(documents)]) {
      const before = await runsIn(directory);
      const isOver = !hasRequests(memory);
      await using bench = await AsyncBench.open({ documents: memory, directory });
      if (isOver) {
        await bench.settled("q");
        assert.equal((await bench.result(ticket)).ok, ok);
        assert.equal(await runsIn(directory), before);
        continue;
      }
      for (const url of [ticket.outputUrl, ticket.failureUrl]) {
        await bench.store.delete(bucket, (url ?? "").replace(`s3://${bucket}/`, ""));
      }
      const result = await bench.result(ticket);
      assert.equal(result.ok, ok);
      if (ok) assert.match(result.text, /"x-amzn-sagemaker-inference-id":"same"/);
      await eventually(() => !hasRequests(memory));
    }
  });
}

test("a platform that ends while requests run has them run again", async (t) => {
  const directory = await temporary(t);
  const documents = new DocumentMemory();
  let tickets;
  {
    await using bench = await AsyncBench.open({ documents, directory });
    await bench.deploy("q");
    tickets = await Promise.all(Array.from({ length: 6 }, () => bench.ask("q", "hold go")));
    await eventually(async () => (await runsIn(directory).catch(() => 0)) === 4);
  }
  await writeFile(join(directory, "go"), "");
  await using bench = await AsyncBench.open({ documents, directory });
  for (const ticket of tickets) assert.equal((await bench.result(ticket)).ok, true);
  assert.equal(await runsIn(directory), 4 + 6);
});

test("a disk that is full for a while when a request has ended delays what is told of it, and loses nothing", async (t) => {
  const directory = await temporary(t);
  const documents = new RememberedMemory();
  await using bench = await AsyncBench.open({ documents, directory });
  await bench.deploy("q", {
    OutputConfig: {
      S3OutputPath: `s3://${bucket}/out`,
      NotificationConfig: { SuccessTopic: "arn:aws:sns:us-east-1:000000000000:good" },
    },
  });
  documents.refusalCount = 3;
  const ticket = await bench.ask("q", "fine");
  assert.equal((await bench.result(ticket)).ok, true);
  await eventually(() => bench.messages.length === 1);
  assert.equal(documents.refusalCount, 0);
  assert.equal(await runsIn(directory), 1);
});
