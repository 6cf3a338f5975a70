import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { LineWriter, type LineTarget } from "./line-writer.ts";

/** A target that accepts each text only when the test calls `takes`. */
class SlowReader implements LineTarget {
  acquired = "";
  now = "";
  readonly lost: string[] = [];
  #next: (() => void) | null = null;

  append(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#next = () => {
        if (text.includes("bad")) return reject(new Error("no"));
        this.acquired += text;
        resolve();
      };
    });
  }
  appendNow(text: string): void {
    this.now += text;
  }
  failed(text: string): void {
    this.lost.push(text);
  }
  async takes(): Promise<void> {
    const next = this.#next;
    this.#next = null;
    next?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const options = { waitingCharsMax: 40, droppedLine: (count: number) => `(${count} dropped)\n` };

test("log lines are written in order, and dropped lines are replaced by their count", async () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.constant("take" as const));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const reader = new SlowReader();
      const writer = new LineWriter(reader, options);
      let writtenCount = 0;
      for (const one of steps) {
        if (one === "take") await reader.takes();
        else writer.write(`${writtenCount++}`.padEnd(one, ".") + "\n");
      }
      const end = writer.written();
      for (let round = 0; round < 5; round++) await reader.takes();
      await end;
      let expected = 0;
      for (const line of reader.acquired.split("\n").slice(0, -1)) {
        const dropped = /^\((\d+) dropped\)$/.exec(line)?.[1];
        if (dropped !== undefined) expected += Number(dropped);
        else assert.equal(Number.parseInt(line, 10), expected++);
      }
      assert.equal(expected, writtenCount);
    }),
  );
});

test("a failed write loses its own lines and no later ones", async () => {
  const reader = new SlowReader();
  const writer = new LineWriter(reader, options);
  writer.write("bad\n");
  writer.write("good\n");
  await reader.takes();
  await reader.takes();
  await writer.written();
  assert.deepEqual([reader.lost, reader.acquired], [["bad\n"], "good\n"]);
});

test("writeNow writes pending lines synchronously at the end of the process", async () => {
  const reader = new SlowReader();
  const writer = new LineWriter(reader, options);
  for (const line of ["under way\n", "waiting\n", "dropped, because it is too long to wait\n"]) writer.write(line);
  writer.writeNow();
  assert.equal(reader.now, "under way\nwaiting\n(1 dropped)\n");
});
