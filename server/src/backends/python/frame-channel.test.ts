import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";
import { openSocketPair } from "../../native/index.ts";
import { FrameChannel } from "./frame-channel.ts";
import { encodeFrame, kinds } from "./wire.ts";

const frame = encodeFrame(kinds.cancel, new Uint8Array());
const turn = () => new Promise((resolve) => setImmediate(resolve));

function open() {
  const pair = openSocketPair();
  const channel = new FrameChannel(pair.ours, { onFrame: () => {}, onMalformed: () => {}, onClosed: () => {} });
  return { channel, closeOther: () => closeSync(pair.theirs) };
}

test("frames are numbered in the order in which they were handed over, whenever they leave", async () => {
  const { channel, closeOther } = open();
  assert.deepEqual(
    [channel.send(frame), channel.sendSoon(frame), channel.sendSoon(frame), channel.send(frame)],
    [1, 2, 3, 4],
  );
  await turn();
  assert.equal(channel.firstLost, Number.POSITIVE_INFINITY);
  closeOther();
  channel.close();
});

test("a frame for nobody is the first that was lost, and so are those of its turn", async () => {
  const { channel, closeOther } = open();
  channel.send(frame);
  closeOther();
  channel.sendSoon(frame);
  channel.sendSoon(frame);
  assert.equal(channel.firstLost, Number.POSITIVE_INFINITY);
  await turn();
  assert.equal(channel.firstLost, 2);
  channel.send(frame);
  assert.equal(channel.firstLost, 2);
  channel.close();
});

test("a frame that is sent at once takes those before it along, and is lost with them", () => {
  const { channel, closeOther } = open();
  closeOther();
  channel.sendSoon(frame);
  assert.equal(channel.send(frame), 2);
  assert.equal(channel.firstLost, 1);
  channel.close();
});
