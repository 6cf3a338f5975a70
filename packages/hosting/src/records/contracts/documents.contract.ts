import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ChangesForgotten,
  DocumentConflict,
  documentsListedMax,
  type ChangeBatch,
  type DocumentChange,
  type DocumentQuery,
  type Documents,
  type ExpectedVersion,
} from "../documents.ts";

/**
 * An implementation under test. It keeps `deletionsMax` deletions and delivers at most `batchMax` changes in a batch.
 */
export interface DocumentsSubject extends AsyncDisposable {
  readonly documents: Documents;
  /** Opens the same documents again. */
  reopen(): Promise<Documents>;
}

export interface DocumentsSubjectOptions {
  readonly deletionsMax: number;
  readonly batchMax: number;
}

const put = (key: string, body: string, expects: ExpectedVersion, orders?: Record<string, string>): DocumentChange => ({
  do: "put",
  kind: "thing",
  key,
  body,
  expects,
  ...(orders === undefined ? {} : { orders }),
});
const remove = (key: string, expects: number | "any"): DocumentChange => ({
  do: "delete",
  kind: "thing",
  key,
  expects,
});
const all: DocumentQuery = { kind: "thing", order: null, isDescending: false, after: null, limit: 100 };

async function keys(documents: Documents, query: Partial<DocumentQuery> = {}): Promise<readonly string[]> {
  return (await documents.list({ ...all, ...query })).documents.map(({ key }) => key);
}

export function documentsContract(
  name: string,
  open: (options: DocumentsSubjectOptions) => Promise<DocumentsSubject>,
): void {
  const opened = (options: Partial<DocumentsSubjectOptions> = {}) =>
    open({ deletionsMax: 1000, batchMax: 100, ...options });

  test(`${name}: a document has the content of the last put and the version of its write`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    assert.equal(await documents.get("thing", "a"), null);
    const first = await documents.write([put("a", "1", "absent")]);
    const second = await documents.write([put("a", "2", first), put("b", "3", "absent")]);
    assert.ok(second > first);
    assert.deepEqual(await documents.get("thing", "a"), { kind: "thing", key: "a", version: second, body: "2" });
    assert.equal((await documents.get("thing", "b"))?.version, second);
    assert.equal(await documents.get("other", "a"), null);
    assert.equal(await documents.version(), second);
  });

  test(`${name}: a write changes nothing if the expected version of one of its changes does not match`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    const version = await documents.write([put("a", "1", "absent")]);
    for (const refused of [
      put("a", "x", "absent"),
      put("a", "x", version - 1),
      put("none", "x", version),
      remove("a", version - 1),
      remove("none", version),
      { do: "check", kind: "thing", key: "a", expects: version - 1 } as const,
      { do: "check", kind: "thing", key: "none", expects: version } as const,
    ]) {
      const written = documents.write([put("before", "x", "any"), refused, put("after", "x", "any")]);
      await assert.rejects(written, (error) => error instanceof DocumentConflict && error.key === refused.key);
    }
    assert.deepEqual(await keys(documents), ["a"]);
    assert.equal((await documents.get("thing", "a"))?.body, "1");
    const check = { do: "check", kind: "thing", key: "a", expects: version } as const;
    const next = await documents.write([check, put("b", "2", "absent")]);
    assert.equal((await documents.get("thing", "a"))?.version, version, "a check changes nothing");
    await documents.write([remove("a", version), remove("b", next), remove("none", "any")]);
    assert.deepEqual(await keys(documents), []);
    await documents.write([put("a", "again", "absent"), remove("none", "any")]);
  });

  test(`${name}: one of several concurrent writes that expect the same version succeeds`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    const version = await documents.write([put("a", "0", "absent")]);
    const outcomes = await Promise.allSettled([1, 2, 3].map((each) => documents.write([put("a", `${each}`, version)])));
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    const created = outcomes.findIndex(({ status }) => status === "fulfilled");
    assert.equal((await documents.get("thing", "a"))?.body, `${created + 1}`);
  });

  test(`${name}: a listing is sorted by key or by an order, ascending or descending, in pages`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    const times = ["3", "1", "2", "1", "2"];
    for (const [index, time] of times.entries()) {
      await documents.write([put(`k${index}`, `${index}`, "absent", { time, ...(index === 0 ? { odd: "x" } : {}) })]);
    }
    await documents.write([{ ...put("k0", "x", "absent", { time: "0" }), kind: "other" }]);
    const pages = async (query: Partial<DocumentQuery>) => {
      const found: string[][] = [];
      for (let after: DocumentQuery["after"] = null; ;) {
        const page = await documents.list({ ...all, ...query, after });
        found.push(page.documents.map(({ key }) => key));
        if (page.next === null) return found;
        after = page.next;
      }
    };
    assert.deepEqual(await pages({ limit: 2 }), [["k0", "k1"], ["k2", "k3"], ["k4"]]);
    assert.deepEqual(await pages({ limit: 2, isDescending: true }), [["k4", "k3"], ["k2", "k1"], ["k0"]]);
    assert.deepEqual(await pages({ limit: 2, order: "time" }), [["k1", "k3"], ["k2", "k4"], ["k0"]]);
    assert.deepEqual(await pages({ limit: 3, order: "time", isDescending: true }), [
      ["k0", "k4", "k2"],
      ["k3", "k1"],
    ]);
    assert.deepEqual(await pages({ limit: 5 }), [["k0", "k1", "k2", "k3", "k4"]]);
    assert.deepEqual(await pages({ order: "odd" }), [["k0"]]);
    assert.deepEqual(await pages({ order: "unknown" }), [[]]);
    const [first] = (await documents.list({ ...all, order: "time" })).documents;
    assert.deepEqual([first?.value, first?.body, first?.kind], ["1", "1", "thing"]);
  });

  test(`${name}: a listing continues after a page whose documents were all deleted or moved`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    for (const key of ["a", "b", "c", "d"]) await documents.write([put(key, "", "absent", { time: key })]);
    const { next } = await documents.list({ ...all, order: "time", limit: 2 });
    await documents.write([remove("a", "any"), put("b", "", "any", { time: "z" })]);
    assert.deepEqual(await keys(documents, { order: "time", after: next }), ["c", "d", "b"]);
    assert.deepEqual(await keys(documents, { order: "time" }), ["c", "d", "b"]);
    await documents.write([put("c", "", "any")]);
    assert.deepEqual(
      await keys(documents, { order: "time" }),
      ["d", "b"],
      "a document without the key is not in the order",
    );
  });

  test(`${name}: a prefix selects values, which are sorted by their UTF-8 bytes`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    const names = ["", "a", "a%", "ab", "a\u{ff5e}", "a\u{1f600}", "b", "_"];
    await documents.write(names.map((each) => put(`k${each}`, "", "absent", { name: each })));
    const byName = async (query: Partial<DocumentQuery>) =>
      (await documents.list({ ...all, order: "name", ...query })).documents.map(({ value }) => value);
    assert.deepEqual(await byName({}), ["", "_", "a", "a%", "ab", "a\u{ff5e}", "a\u{1f600}", "b"]);
    assert.deepEqual(await byName({ prefix: "a" }), ["a", "a%", "ab", "a\u{ff5e}", "a\u{1f600}"]);
    assert.deepEqual(await byName({ prefix: "a", isDescending: true, limit: 2 }), ["a\u{1f600}", "a\u{ff5e}"]);
    assert.deepEqual(await byName({ prefix: "%" }), []);
    assert.deepEqual(await keys(documents, { prefix: "ka" }), ["ka", "ka%", "kab", "ka\u{ff5e}", "ka\u{1f600}"]);
  });

  test(`${name}: a page has at most ${documentsListedMax} documents`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    await documents.write(Array.from({ length: documentsListedMax + 5 }, (_, index) => put(`${index}`, "", "absent")));
    const page = await documents.list({ ...all, limit: 1_000_000 });
    assert.equal(page.documents.length, documentsListedMax);
    assert.ok(page.next !== null);
    assert.equal((await documents.list({ ...all, limit: 1_000_000, after: page.next })).documents.length, 5);
  });

  test(`${name}: written documents exist after the next opening, and versions continue`, async () => {
    await using subject = await opened();
    await subject.documents.write([put("a", "1", "absent", { time: "1" }), put("b", "2", "absent")]);
    const last = await subject.documents.write([remove("b", "any")]);
    const documents = await subject.reopen();
    assert.equal(await documents.version(), last);
    assert.deepEqual(await keys(documents, { order: "time" }), ["a"]);
    assert.ok((await documents.write([put("b", "3", "absent")])) > last);
  });

  changesContract(name, opened);
}

/** Reads batches until one has the given version or a later one. */
async function toldUntil(batches: AsyncIterator<ChangeBatch>, version: number): Promise<readonly ChangeBatch[]> {
  const reported: ChangeBatch[] = [];
  for (;;) {
    const { value, done } = await batches.next();
    assert.ok(done !== true, "changes have no end");
    reported.push(value);
    if (value.version >= version) return reported;
  }
}

const told = (batches: readonly ChangeBatch[]) =>
  batches.flatMap(({ changes }) => changes.map(({ key, document }) => [key, document?.body ?? null] as const));

function changesContract(
  name: string,
  opened: (options?: Partial<DocumentsSubjectOptions>) => Promise<DocumentsSubject>,
): void {
  test(`${name}: a reader gets the changes since a version, and then later ones`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    const since = await documents.write([put("a", "1", "absent"), put("b", "1", "absent")]);
    await documents.write([put("a", "2", "any")]);
    const last = await documents.write([remove("b", "any"), put("c", "1", "absent")]);
    const disconnect = new AbortController();
    const batches = documents.changes(since, disconnect.signal)[Symbol.asyncIterator]();
    const before = await toldUntil(batches, last);
    assert.deepEqual(told(before), [
      ["a", "2"],
      ["b", null],
      ["c", "1"],
    ]);
    assert.equal(before.at(-1)?.version, last);
    const waiting = toldUntil(batches, last + 1);
    const next = await documents.write([put("d", "1", "absent")]);
    const after = await waiting;
    assert.deepEqual(told(after), [["d", "1"]]);
    assert.deepEqual(after[0]?.changes[0], {
      kind: "thing",
      key: "d",
      version: next,
      document: { kind: "thing", key: "d", version: next, body: "1" },
    });
    const removed = batches.next();
    disconnect.abort(new Error("left"));
    await assert.rejects(removed, /left/);
  });

  test(`${name}: a slow reader gets the current documents in limited batches that split no write`, async () => {
    await using subject = await opened({ batchMax: 3 });
    const { documents } = subject;
    for (let round = 0; round < 5; round++) {
      await documents.write([put("same", `${round}`, "any"), put(`pair-${round}`, "", "any")]);
    }
    const last = await documents.write([put("x", "", "any"), put("y", "", "any"), put("z", "", "any")]);
    const batches = await toldUntil(documents.changes(0, new AbortController().signal)[Symbol.asyncIterator](), last);
    assert.deepEqual(
      told(batches).map(([key]) => key),
      ["pair-0", "pair-1", "pair-2", "pair-3", "pair-4", "same", "x", "y", "z"],
    );
    assert.deepEqual(
      told(batches).find(([key]) => key === "same"),
      ["same", "4"],
    );
    assert.ok(
      batches.every(({ changes }) => changes.length <= 5),
      batches.map(({ changes }) => changes.length).join(),
    );
    for (const { version, changes } of batches) assert.ok(changes.every((change) => change.version <= version));
    assert.deepEqual(
      batches.filter(({ changes }) => changes.some(({ key }) => "xyz".includes(key))).map(({ version }) => version),
      [last],
    );
  });

  test(`${name}: a document that was deleted and put again exists, and a read from the last version waits`, async () => {
    await using subject = await opened();
    const { documents } = subject;
    await documents.write([put("a", "1", "absent")]);
    await documents.write([remove("a", "any")]);
    const last = await documents.write([put("a", "2", "absent")]);
    const batches = await toldUntil(documents.changes(0, new AbortController().signal)[Symbol.asyncIterator](), last);
    assert.deepEqual(told(batches), [["a", "2"]]);
    const disconnect = new AbortController();
    const waiting = documents.changes(last, disconnect.signal)[Symbol.asyncIterator]().next();
    disconnect.abort(new Error("left"));
    await assert.rejects(waiting, /left/);
    const left = AbortSignal.abort(new Error("left before"));
    await assert.rejects(documents.changes(0, left)[Symbol.asyncIterator]().next(), /left before/);
  });

  test(`${name}: old deletions are dropped over a limit, and a reader from before them gets an error`, async () => {
    await using subject = await opened({ deletionsMax: 4 });
    const { documents } = subject;
    const started = await documents.write([put("kept", "", "absent")]);
    let last = started;
    for (let index = 0; index < 12; index++) {
      await documents.write([put(`${index}`, "", "absent")]);
      last = await documents.write([remove(`${index}`, "any")]);
    }
    const never = new AbortController().signal;
    const call = documents.changes(started, never)[Symbol.asyncIterator]().next();
    await assert.rejects(call, ChangesForgotten);
    assert.deepEqual(await keys(documents), ["kept"]);
    assert.equal(await documents.version(), last);
    const recent = await toldUntil(documents.changes(last - 1, never)[Symbol.asyncIterator](), last);
    assert.deepEqual(told(recent), [["11", null]]);
    const again = await subject.reopen();
    await assert.rejects(again.changes(started, never)[Symbol.asyncIterator]().next(), ChangesForgotten);
  });
}
