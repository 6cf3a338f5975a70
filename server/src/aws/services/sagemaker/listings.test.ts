import assert from "node:assert/strict";
import { test } from "node:test";
import { LoopTurns } from "../../../base/index.ts";
import type { Hosting } from "../../../hosting/index.ts";
import type { CallContext } from "../../wire/index.ts";
import { listOperations } from "./listings.ts";

const count = 10_000;
const name = (number: number) => `model-${String(number).padStart(5, "0")}`;

test("ListModels of 10,000 models, by ten clients at once, looks at a thousand rows between two turns of others", async () => {
  const models = Array.from({ length: count }, (_, at) => {
    const number = (at * 7919) % count;
    return { name: name(number), arn: `arn:${number}`, createdMs: Math.floor(number / 4) };
  });
  let touched = 0;
  function* values() {
    for (const model of models) {
      touched += 1;
      yield model;
    }
  }
  const { handle } = listOperations({ models: { values } } as unknown as Hosting).ListModels;
  const turns = new LoopTurns();
  const signal = new AbortController().signal;
  const list = (input: Parameters<typeof handle>[0]) =>
    handle(input, { turn: () => turns.next(signal) } as CallContext);
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
