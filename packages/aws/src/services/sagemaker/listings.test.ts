import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ByteBudget, EventLoopQueue, silentLogger as logger, systemClock } from "@galatea/base";
import { nodeWith } from "@galatea/hosting/nodes/node-fixture.ts";
import { Hosting, hostingLimits, type HostingOptions } from "@galatea/hosting";
import { openDocuments } from "@galatea/hosting/records";
import type { CallContext } from "../../wire/index.ts";
import { listOperations } from "./listings.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-listings-"));
after(() => rmSync(root, { recursive: true, force: true }));

const owner = { accountId: "000000000000", region: "us-east-1" };
const count = 10_000;
const name = (number: number) => `model-${String(number).padStart(5, "0")}`;

test("ListModels of 10,000 models by ten concurrent clients reads at most a thousand rows between two event loop ticks", async () => {
  const path = join(root, "records.db");
  let touched = 0;
  await using documents = await openDocuments({ path, logger });
  const read = documents.list.bind(documents);
  documents.list = async (query) => {
    const page = await read(query);
    touched += page.documents.length;
    return page;
  };
  let createdCount = 0;
  // Groups of four models have the same creation time.
  const clock = { ...systemClock, epochMs: () => Math.floor(createdCount++ / 4) };
  const fleet = { host: {}, clock, logger, requestMemory: new ByteBudget(1) } as unknown as HostingOptions["fleet"];
  await using hosting = await Hosting.open({
    documents,
    limits: hostingLimits,
    nodes: [nodeWith()],
    random: Math.random,
    alarmState: () => null,
    fleet,
  });
  for (let at = 0; at < count; at += 500) {
    await Promise.all(
      Array.from({ length: 500 }, (_, more) => {
        return hosting.catalog.createModel({
          name: name(at + more),
          owner,
          containers: [{}],
          executionMode: "Serial",
          request: {},
          tags: [],
        });
      }),
    );
  }
  const { ListModels } = listOperations(hosting);
  const loopQueue = new EventLoopQueue();
  const signal = new AbortController().signal;
  const list = (input: Parameters<typeof ListModels.handle>[0]) =>
    ListModels.handle(input, { nextTick: () => loopQueue.next(signal) } as CallContext);
  let touchedBefore = 0;
  let mostInARound = 0;
  let isOver = false;
  const look = () => {
    mostInARound = Math.max(mostInARound, touched - touchedBefore);
    touchedBefore = touched;
    if (!isOver) setImmediate(look);
  };
  look();
  const first = await list({});
  const inOrder = await Promise.all(
    Array.from({ length: 10 }, (_, at) =>
      list({ SortBy: "Name", SortOrder: "Ascending", MaxResults: 100, NameContains: `MODEL-0${at}` }),
    ),
  );
  isOver = true;
  assert.ok(mostInARound <= 1000, `${mostInARound} rows`);
  const names = (page: typeof first) => page.Models.map(({ ModelName }) => ModelName);
  assert.deepEqual(
    names(first),
    Array.from({ length: 10 }, (_, at) => name(count - 1 - at)),
  );
  for (const [at, page] of inOrder.entries()) {
    assert.deepEqual(
      names(page),
      Array.from({ length: 100 }, (_, next) => name(at * 1000 + next)),
    );
  }
  const next = await list({ NextToken: first.NextToken ?? "" });
  assert.deepEqual(
    names(next),
    Array.from({ length: 10 }, (_, at) => name(count - 11 - at)),
  );
  const last = await list({ SortBy: "Name", SortOrder: "Ascending", NameContains: "09999" });
  assert.deepEqual([names(last), last.NextToken], [[name(9_999)], undefined]);
});
