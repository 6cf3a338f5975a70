import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelArchive, UnpackedModels } from "../model-cache/index.ts";

/** An implementation under test: unpacked models, and a store of archives. */
export interface ModelTreesSubject extends AsyncDisposable {
  readonly trees: UnpackedModels;
  /** Stores an archive with one file of `fileBytes` bytes. Replaces an earlier archive of the same target. */
  put(target: string, fileBytes: number): Promise<ModelArchive>;
  /** Resolves with whether a container would find the files of a model. */
  holds(id: string): Promise<boolean>;
  /** Changes a model's file on disk without using `trees`. */
  damage(id: string): Promise<void>;
  /** Opens the instance again, as the next run of the platform does. */
  reopen(): Promise<UnpackedModels>;
}

const never = new AbortController().signal;
const quiet = { signal: never, onProgress: () => {} };

export function modelTreesContract(name: string, open: () => Promise<ModelTreesSubject>): void {
  test(`${name}: a model exists completely once it is unpacked, and not at all once it is removed`, async () => {
    await using subject = await open();
    const { trees } = subject;
    assert.deepEqual(await trees.adopt(), []);
    const model = await subject.put("a.tar.gz", 1000);
    assert.equal(await subject.holds(model.id), false);
    const grown: number[] = [];
    const tree = await trees.unpack(model, { signal: never, onProgress: (bytes) => grown.push(bytes) });
    assert.ok(tree !== null && tree.ownBytes >= 1000);
    assert.ok(grown.length > 0 && grown.every((bytes) => bytes <= tree.expandedBytes), grown.join(" "));
    assert.equal(await subject.holds(model.id), true);
    assert.equal(await trees.isWhole(model.id, tree, never), true);
    await trees.remove(model.id, tree);
    assert.equal(await subject.holds(model.id), false);
  });

  test(`${name}: a model is unpacked again while its earlier files are still being removed`, async () => {
    await using subject = await open();
    const { trees } = subject;
    const model = await subject.put("a.tar.gz", 1000);
    const before = await trees.unpack(model, quiet);
    assert.ok(before !== null);
    const removed = trees.remove(model.id, before);
    const after = await trees.unpack(model, quiet);
    await removed;
    assert.ok(after !== null && (await trees.isWhole(model.id, after, never)));
  });

  test(`${name}: the current version of an object is found; another version or a missing object is not unpacked and leaves no files`, async () => {
    await using subject = await open();
    const { trees } = subject;
    const old = await subject.put("a.tar.gz", 1000);
    const current = await subject.put("a.tar.gz", 2000);
    const absent = { ...old, id: "0".repeat(32), target: "none.tar.gz" };
    const found = await trees.find(old.target, never);
    assert.deepEqual([found?.etag, found?.byteLength], [current.etag, current.archiveBytes]);
    assert.equal(await trees.find(absent.target, never), null);
    for (const model of [old, absent]) {
      assert.equal(await trees.unpack(model, quiet), null);
      assert.equal(await subject.holds(model.id), false);
    }
  });

  test(`${name}: an unpacking that exceeds its quota or is aborted leaves no files`, async () => {
    await using subject = await open();
    const { trees } = subject;
    const model = await subject.put("a.tar.gz", 300_000);
    const full = () => {
      throw new Error("no more bytes");
    };
    await assert.rejects(trees.unpack(model, { signal: never, onProgress: full }), /no more bytes/);
    assert.equal(await subject.holds(model.id), false);
    const signal = AbortSignal.abort(new Error("no caller waits for it"));
    await assert.rejects(trees.unpack(model, { ...quiet, signal }), /no caller waits for it/);
    assert.equal(await subject.holds(model.id), false);
    assert.deepEqual(await (await subject.reopen()).adopt(), []);
  });

  test(`${name}: the next run finds the trees that were unpacked and not removed`, async () => {
    await using subject = await open();
    const { trees } = subject;
    const models = [await subject.put("a.tar.gz", 10), await subject.put("b.tar.gz", 20), await subject.put("c", 30)];
    const unpacked = [];
    for (const model of models) unpacked.push({ model, tree: await trees.unpack(model, quiet) });
    const [ended, ...left] = unpacked;
    assert.ok(ended !== undefined && ended.tree !== null);
    await trees.remove(ended.model.id, ended.tree);
    const next = await subject.reopen();
    const expected = left.map(({ model: { target, etag, archiveBytes }, tree }) => ({
      target,
      etag,
      archiveBytes,
      tree,
    }));
    assert.deepEqual(
      (await next.adopt()).toSorted((a, b) => (a.target < b.target ? -1 : 1)),
      expected,
    );
    for (const { model, tree } of left) {
      assert.equal(await subject.holds(model.id), true);
      assert.ok(tree !== null && (await next.isWhole(model.id, tree, never)));
    }
  });

  test(`${name}: a file that was changed between runs is detected`, async () => {
    await using subject = await open();
    const { trees } = subject;
    const model = await subject.put("a.tar.gz", 1000);
    const tree = await trees.unpack(model, quiet);
    assert.ok(tree !== null);
    await subject.damage(model.id);
    assert.equal(await trees.isWhole(model.id, tree, never), false);
  });
}
