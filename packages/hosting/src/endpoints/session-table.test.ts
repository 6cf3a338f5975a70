import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { ByteBudget, ByteLease, systemClock } from "@galatea/base";
import { parseOpenedSession, type InvocationReply, type InvocationRequest } from "../invocations/index.ts";
import { SessionTable } from "./session-table.ts";

let nowMs = Date.parse("2026-01-01T00:00:00Z");
const clock = { ...systemClock, epochMs: () => nowMs };

const asks = (session: string): InvocationRequest => ({
  headers: {},
  targetModel: null,
  targetVariant: null,
  targetContainer: null,
  isStreamed: false,
  session,
  body: () => assert.fail("the session table does not read bodies"),
  memory: new ByteLease(new ByteBudget(1)),
  receivedNs: 0,
  signal: new AbortController().signal,
});

function says(opened: string | null, closedSession: string | null = null, done = () => {}): InvocationReply {
  const openedSession = opened === null ? null : parseOpenedSession(opened);
  const reported = {
    contentType: null,
    customAttributes: null,
    variantName: "a",
    byteLength: 0,
    openedSession,
    closedSession,
  };
  return { ...reported, body: Buffer.alloc(0), done, onStart: () => {}, failed: (error) => error };
}

function tableOf({ sessionsMax = 100, serving = new Set(["one", "two"]) } = {}) {
  const isServing = (holder: string) => serving.has(holder);
  return new SessionTable<string>({ endpointName: "e", sessionsMax, clock, isServing });
}

const open = (table: SessionTable<string>, text: string, holder = "one") =>
  table.serve(asks("NEW_SESSION"), () => Promise.resolve({ reply: says(text), holder }));

test("a session's requests go to the instance that opened it until the model closes it", async () => {
  const table = tableOf();
  await open(table, "s1; Expires=2026-01-01T01:00:00Z", "two");
  const requested: (string | null)[] = [];
  const closes = (closed: string | null) => (holder: string | null) => {
    requested.push(holder);
    return Promise.resolve({ reply: says(null, closed), holder: "two" });
  };
  assert.equal((await table.serve(asks("s1"), closes("s2"))).closedSession, null);
  assert.equal((await table.serve(asks("s1"), closes("s1"))).closedSession, "s1");
  assert.deepEqual(requested, ["two", "two"]);
  await assert.rejects(table.serve(asks("s1"), closes(null)), {
    code: "ValidationError",
    message: /^Session s1 not found for Request of endpoint e\./,
  });
});

test("a session ends at its expiry time", async () => {
  const table = tableOf();
  await open(table, "s1; Expires=2026-01-01T01:00:00Z");
  nowMs = Date.parse("2026-01-01T00:59:59Z");
  assert.equal(table.holderOf("s1"), "one");
  nowMs = Date.parse("2026-01-01T01:00:00Z");
  assert.equal(table.holderOf("s1"), null);
});

test("the sessions of an instance end with it, including sessions that it opens while it drains", async () => {
  const serving = new Set(["one", "two"]);
  const table = tableOf({ serving });
  await open(table, "s1; Expires=2027-01-01T01:00:00Z", "one");
  await open(table, "s2; Expires=2027-01-01T01:00:00Z", "two");
  table.drop(new Set(["one"]));
  serving.delete("one");
  await open(table, "s3; Expires=2027-01-01T01:00:00Z", "one");
  assert.deepEqual(
    ["s1", "s2", "s3"].map((id) => table.holderOf(id)),
    [null, "two", null],
  );
});

test("the number of sessions is limited, including those that are being opened", async () => {
  const table = tableOf({ sessionsMax: 2 });
  await open(table, "s1; Expires=2027-01-01T01:00:00Z");
  const { promise, resolve } = Promise.withResolvers<string>();
  const opening = table.serve(asks("NEW_SESSION"), async () => ({ reply: says(await promise), holder: "one" }));
  await assert.rejects(open(table, "s3; Expires=2027-01-01T01:00:00Z"), { code: "ServiceUnavailable" });
  resolve("s2; Expires=2026-01-01T00:00:00Z");
  await opening;
  // The second session had already expired.
  await open(table, "s3; Expires=2027-01-01T01:00:00Z");
});

test("a session id that is already in use is a ModelError, and the response is discarded", async () => {
  const table = tableOf();
  await open(table, "s1; Expires=2027-01-01T01:00:00Z");
  const body = new Readable({ read() {} });
  let isDone = false;
  const reply = { ...says("s1; Expires=2027-01-01T01:00:00Z", null, () => (isDone = true)), body };
  const again = table.serve(asks("NEW_SESSION"), () => Promise.resolve({ reply, holder: "two" }));
  await assert.rejects(again, { code: "ModelError" });
  assert.deepEqual([isDone, body.destroyed, table.holderOf("s1")], [true, true, "one"]);
});

for (const text of [
  "",
  "s1",
  "s_1; Expires=2026-01-01T00:00:00Z",
  "s1; Expires=2026-13-01T00:00:00Z",
  "s1; Expires=soon",
])
  test(`the header value '${text}' opens no session`, () => assert.equal(parseOpenedSession(text), null));
