import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { createLogger, silentLogger, systemClock, type Clock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { openDirectoryStore } from "./directory-store.ts";
import { EntrySnapshot } from "./entry-snapshot.ts";
import { keyHash } from "./object-entry.ts";
import type { BucketStore, ObjectHead } from "./object-store.ts";

const signal = new AbortController().signal;
const logger = silentLogger;

async function inFolder(task: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "galatea-snapshot-"));
  try {
    await task(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const bucketOf = (folder: string) => join(folder, "buckets", "bkt");
const snapshotOf = (folder: string) => join(bucketOf(folder), "objects.snapshot");
const put = (store: BucketStore, key: string, text: string) =>
  store.put("bkt", key, Readable.from([Buffer.from(text)]), { signal });
const textOf = async (store: BucketStore, key: string) => (await buffer((await store.get("bkt", key)).body)).toString();

/**
 * Copies the folder, which simulates `kill -9`. Skips the unfinished snapshot, which may be renamed during the copy.
 */
const copied = (from: string, to: string) =>
  cp(from, to, { recursive: true, filter: (path) => !path.endsWith("objects.snapshot.new") });

/** Resolves with the heads and contents of all objects, in the order of their keys. */
async function contentsOf(folder: string) {
  await using store = await openDirectoryStore({ folder, logger });
  const { objects } = await store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 1000 });
  const all = [];
  for (const head of objects) all.push({ head, text: await textOf(store, head.key) });
  return all;
}

async function made(folder: string, texts: Readonly<Record<string, string>>, clock: Clock = systemClock) {
  const store = await openDirectoryStore({ folder, logger, clock });
  await store.createBucket("bkt");
  for (const [key, text] of Object.entries(texts)) await put(store, key, text);
  return store;
}

/** Returns the paths of all entry files, by the hash of the key. */
async function entryPaths(folder: string): Promise<ReadonlyMap<string, string>> {
  const objects = join(bucketOf(folder), "objects");
  const names = (await readdir(objects, { recursive: true })).filter((name) => name.endsWith(".json"));
  return new Map(names.map((name) => [name.slice(3, 67), join(objects, name)]));
}

/**
 * Damages the first bytes of each entry file. A start that reads these files, instead of the snapshot, quarantines
 * them.
 */
async function spoilEntries(folder: string): Promise<void> {
  for (const path of (await entryPaths(folder)).values()) {
    const bytes = await readFile(path);
    await writeFile(path, bytes.fill("x", 0, 30));
  }
}

test("a start after a stop reads only the snapshot, and no object's file", async () => {
  await inFolder(async (folder) => {
    const store = await made(folder, { a: "one", "b/c": "two" });
    await store.changeHeaders("bkt", "a", { "x-amz-meta-m": "n" });
    await store[Symbol.asyncDispose]();
    const before = await contentsOf(folder);
    assert.deepEqual(
      before.map(({ head, text }) => [head.key, text, (head as ObjectHead).headers]),
      [
        ["a", "one", { "x-amz-meta-m": "n" }],
        ["b/c", "two", {}],
      ],
    );
    await spoilEntries(folder);
    assert.deepEqual(await contentsOf(folder), before);
    await rm(snapshotOf(folder));
    assert.deepEqual(await contentsOf(folder), [], "without it they are read, and set aside");
  });
});

test("after kill -9 only objects since the last snapshot are read from their files", async () => {
  await inFolder(async (root) => {
    const folder = join(root, "store");
    await using store = await made(folder, { first: "1" });
    await store.delete("bkt", "first");
    await put(store, "kept", "2");
    for (let number = 0; number < 1000; number += 1)
      await store.changeHeaders("bkt", "kept", { "x-amz-meta-n": `${number}` });
    await eventually(async () => (await stat(snapshotOf(folder)).catch(() => null)) !== null);
    const lines = (await readFile(snapshotOf(folder), "utf8")).trimEnd().split("\n").length;
    assert.equal(lines, 2, "the header and one object, however often it changed");
    await put(store, "since", "3");
    const killed = join(root, "killed");
    await copied(folder, killed);
    assert.deepEqual(
      (await contentsOf(killed)).map(({ head }) => head.key),
      ["kept", "since"],
    );
  });
});

type Step =
  | { readonly do: "put" | "delete" | "describe"; readonly key: string; readonly text: string }
  /** A kill or a regular stop, followed by damage to the snapshot at an offset. */
  | { readonly do: "end"; readonly isKill: boolean; readonly damage: keyof typeof damages; readonly at: number };

const damages = {
  none: async () => undefined,
  cut: async (path: string, at: number) => truncate(path, at % ((await stat(path)).size + 1)),
  flip: async (path: string, at: number) => {
    const bytes = await readFile(path);
    bytes[at % bytes.length]! ^= 1 << (at % 8);
    await writeFile(path, bytes);
  },
  zeros: async (path: string, at: number) => {
    const bytes = await readFile(path);
    await writeFile(path, bytes.fill(0, at % bytes.length));
  },
  swap: async (path: string, at: number) => {
    const lines = (await readFile(path, "utf8")).split("\n");
    const position = at % lines.length;
    await writeFile(path, [...lines.slice(position), ...lines.slice(0, position)].join("\n"));
  },
  garbage: async (path: string, at: number) => writeFile(path, Buffer.alloc(at % 5000, `${at}\n`), { flag: "a" }),
  unfinished: async (path: string, at: number) =>
    writeFile(`${path}.new`, (await readFile(path)).subarray(0, at % 5000)),
  gone: async (path: string) => rm(path, { force: true }),
} as const satisfies Readonly<Record<string, (path: string, at: number) => Promise<void>>>;

const keys = fc.constantFrom("a", "b", "c/d", "é", "e".repeat(500));
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("put" as const), key: keys, text: fc.string() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("delete" as const, "describe" as const),
      key: keys,
      text: fc.string(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      isKill: fc.boolean(),
      damage: fc.constantFrom(...(Object.keys(damages) as (keyof typeof damages)[])),
      at: fc.nat(),
    }),
  },
);

async function act(store: BucketStore, step: Exclude<Step, { readonly do: "end" }>): Promise<void> {
  if (step.do === "put") await put(store, step.key, step.text);
  else if (step.do === "delete") await store.delete("bkt", step.key);
  else {
    const changes = { "x-amz-meta-text": Buffer.from(step.text).toString("hex") };
    await store
      .changeHeaders("bkt", step.key, changes)
      .catch((error: { readonly code?: string }) => assert.equal(error.code, "NoSuchKey"));
  }
}

test("after any puts, deletes, kills and damage a start with the snapshot finds the same objects as one without it", async () => {
  await inFolder(async (root) => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 2, maxLength: 25 }), async (all) => {
        let folder = join(root, `${(run += 1)}`);
        let store = await made(folder, {});
        const expected = new Map<string, string>();
        for (const step of all) {
          if (step.do !== "end") {
            await act(store, step);
            if (step.do === "put") expected.set(step.key, step.text);
            if (step.do === "delete") expected.delete(step.key);
            continue;
          }
          const next = join(root, `${(run += 1)}`);
          if (!step.isKill) await store[Symbol.asyncDispose]();
          await copied(folder, next);
          if (step.isKill) await store[Symbol.asyncDispose]();
          folder = next;
          const hasSnapshot = (await stat(snapshotOf(folder)).catch(() => null)) !== null;
          if (hasSnapshot) await damages[step.damage](snapshotOf(folder), step.at);
          store = await openDirectoryStore({ folder, logger });
        }
        await store[Symbol.asyncDispose]();
        const contents = await contentsOf(folder);
        await rm(snapshotOf(folder), { force: true });
        assert.deepEqual(contents, await contentsOf(folder));
        assert.deepEqual(new Map(contents.map(({ head, text }) => [head.key, text])), expected);
      }),
      { numRuns: 60 },
    );
  });
});

test("an object that is missing in the snapshot is found, and one whose file is missing is not", async () => {
  await inFolder(async (folder) => {
    await (await made(folder, { kept: "1", deleted: "2" }))[Symbol.asyncDispose]();
    const other = join(folder, "other");
    await (await made(other, { unknown: "0", added: "3" }))[Symbol.asyncDispose]();
    await rm((await entryPaths(folder)).get(keyHash("deleted")) ?? "");
    const added = (await entryPaths(other)).get(keyHash("added")) ?? "";
    await cp(added, added.replace(other, folder));
    await rm(other, { recursive: true });
    const texts = (await contentsOf(folder)).map(({ head, text }) => [head.key, text]);
    assert.deepEqual(texts, [
      ["added", "3"],
      ["kept", "1"],
    ]);
  });
});

test("a version in the snapshot is not assigned again, even if it was the highest and its file is missing", async () => {
  await inFolder(async (root) => {
    const [first, second, third] = ["1", "2", "3"].map((name) => join(root, name)) as [string, string, string];
    await (await made(first, { k: "old!" }))[Symbol.asyncDispose]();
    {
      await using store = await openDirectoryStore({ folder: first, logger });
      await store.delete("bkt", "k");
      await copied(first, second);
    }
    {
      await using store = await openDirectoryStore({ folder: second, logger });
      await put(store, "k", "new!");
      await copied(second, third);
    }
    assert.equal((await contentsOf(third))[0]?.text, "new!");
  });
});

test("of two versions after a kill the newer one is the object, whichever the snapshot has, and the other is removed", async () => {
  await inFolder(async (root) => {
    const all = Array.from({ length: 8 }, (_, index) => `key-${index}`);
    const [folder, killed] = [join(root, "store"), join(root, "killed")];
    await (await made(folder, Object.fromEntries(all.map((key) => [key, "old"]))))[Symbol.asyncDispose]();
    const before = await Promise.all(
      [...(await entryPaths(folder)).values()].map(async (path) => ({ path, bytes: await readFile(path) })),
    );
    {
      await using store = await openDirectoryStore({ folder, logger });
      for (const key of all) await put(store, key, "new");
      await copied(folder, killed);
    }
    for (const state of [killed, folder]) {
      for (const { path, bytes } of before) await writeFile(path.replace(folder, state), bytes);
      assert.deepEqual(new Set((await contentsOf(state)).map(({ text }) => text)), new Set(["new"]));
      const objects = await readdir(join(bucketOf(state), "objects"), { recursive: true });
      assert.equal(objects.filter((name) => name.endsWith(".json")).length, all.length);
    }
  });
});

test("another kind of file at the snapshot's path neither blocks the start nor adds an object, and is replaced", async () => {
  await inFolder(async (folder) => {
    await (await made(folder, { a: "1", b: "2" }))[Symbol.asyncDispose]();
    const sound = await readFile(snapshotOf(folder));
    const header = sound.subarray(0, sound.indexOf("\n") + 1);
    const line = sound.subarray(header.length, sound.indexOf("\n", header.length) + 1);
    const locations: Readonly<Record<string, (path: string) => unknown>> = {
      pipe: (path) => execFileSync("mkfifo", [path]),
      folder: (path) => mkdir(join(path, "x"), { recursive: true }),
      link: (path) => execFileSync("ln", ["-s", "/dev/zero", path]),
      empty: (path) => writeFile(path, ""),
      "no line breaks": (path) => writeFile(path, Buffer.concat([header, Buffer.alloc(5 * 2 ** 20, "x")])),
      "nothing but line breaks": (path) => writeFile(path, Buffer.concat([header, Buffer.alloc(2 ** 20, "\n")])),
      "no header": (path) => writeFile(path, line),
      "a damaged line": (path) => writeFile(path, Buffer.from(sound).fill("x", header.length, header.length + 3)),
    };
    for (const [what, place] of Object.entries(locations)) {
      await rm(snapshotOf(folder), { recursive: true });
      await place(snapshotOf(folder));
      const texts = (await contentsOf(folder)).map(({ head, text }) => [head.key, text]);
      const expected = [
        ["a", "1"],
        ["b", "2"],
      ];
      assert.deepEqual(texts, expected, what);
      const lines = (await readFile(snapshotOf(folder), "utf8")).split("\n");
      assert.deepEqual(lines.sort(), sound.toString().split("\n").sort(), `${what}: it is written anew`);
    }
  });
});

test("a snapshot that cannot be written fails no write, and the next start reads the objects' files", async () => {
  await inFolder(async (folder) => {
    const logged: string[] = [];
    const log = createLogger((_, message) => logged.push(message));
    await (await made(folder, {}))[Symbol.asyncDispose]();
    const store = await openDirectoryStore({ folder, logger: log });
    // Opening the store writes a missing snapshot in the background.
    await eventually(async () => (await stat(snapshotOf(folder)).catch(() => null)) !== null);
    // Simulates a full disk: the file can be neither created nor written.
    await mkdir(`${snapshotOf(folder)}.new`);
    for (let number = 0; number < 20; number += 1) await put(store, `k${number}`, "text");
    await store[Symbol.asyncDispose]();
    assert.equal(logged.filter((message) => message.startsWith("the snapshot of a bucket's entries")).length, 1);
    assert.equal((await contentsOf(folder)).length, 20);
    await spoilEntries(folder);
    assert.equal((await contentsOf(folder)).length, 20, "it was written once it could be");
  });
});

test("of consecutive failures to write a snapshot only the first is logged", async () => {
  await inFolder(async (folder) => {
    const path = join(folder, "objects.snapshot");
    let isDiskFull = true;
    let writeCount = 0;
    let logCount = 0;
    const all = () => {
      writeCount += 1;
      if (isDiskFull) throw new Error("ENOSPC");
      return [];
    };
    const log = createLogger(() => (logCount += 1));
    await using snapshot = new EntrySnapshot({ path, logger: log, entries: { size: 0, all } });
    const failTwice = async () => {
      const end = writeCount + 2;
      await eventually(() => (snapshot.changed(2000), writeCount >= end));
      // A second log message, if any, is written in the microtasks after the write begins.
      await setImmediate();
    };
    await failTwice();
    assert.equal(logCount, 1);
    isDiskFull = false;
    await eventually(async () => (snapshot.changed(2000), (await stat(path).catch(() => null)) !== null));
    isDiskFull = true;
    await failTwice();
    assert.equal(logCount, 2);
  });
});
