import assert from "node:assert/strict";
import { closeSync, writeSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { openSocketPair } from "@galatea/base/system";
import { FrameChannel } from "./frame-channel.ts";
import { encodeFrame, frameBytesMax, headerBytes, kinds } from "./wire.ts";

const frame = encodeFrame(kinds.cancel, new Uint8Array());
const nextTick = () => new Promise((resolve) => setImmediate(resolve));

function open(context: TestContext) {
  const pair = openSocketPair();
  const frames: string[] = [];
  const malformed: string[] = [];
  const channel = new FrameChannel(pair.ours, {
    onFrame: (one) => frames.push(one.toString("latin1", headerBytes)),
    onMalformed: (error) => malformed.push(error.message),
    onClosed: () => {},
  });
  context.after(() => channel.close());
  return { channel, frames, malformed, theirs: pair.theirs, closeOther: () => closeSync(pair.theirs) };
}

test("frames are read completely, however their bytes are chunked", async (context) => {
  const texts = ["", "a", "frame of a few words", "x".repeat(300), ""];
  const bytes = Buffer.concat(texts.map((text) => encodeFrame(kinds.log, Buffer.from(text))));
  const { frames, theirs } = open(context);
  for (let step = 1; step < 40; step++) {
    frames.length = 0;
    for (let at = 0; at < bytes.byteLength; at += step) {
      writeSync(theirs, bytes, at, Math.min(step, bytes.byteLength - at));
      await nextTick();
    }
    while (frames.length < texts.length) await nextTick();
    assert.deepEqual(frames, texts, `${step} bytes at a time`);
  }
  closeSync(theirs);
});

test("a frame with a length below its header or above the maximum closes the channel", async (context) => {
  for (const frameBytes of [0, headerBytes - 1, frameBytesMax + 1]) {
    const { malformed, theirs } = open(context);
    const head = Buffer.alloc(headerBytes);
    head.writeUInt32LE(frameBytes);
    writeSync(theirs, head, 0, 5);
    while (malformed.length === 0) await nextTick();
    assert.match(malformed[0]!, new RegExp(`a frame of ${frameBytes} bytes`));
    closeSync(theirs);
  }
});

test("frames are numbered in the order of the calls, whenever they are sent", async (context) => {
  const { channel, closeOther } = open(context);
  assert.deepEqual(
    [channel.send(frame), channel.sendSoon(frame), channel.sendSoon(frame), channel.send(frame)],
    [1, 2, 3, 4],
  );
  await nextTick();
  assert.equal(channel.firstLost, Number.POSITIVE_INFINITY);
  closeOther();
});

test("a frame without a receiver counts as lost, and so do those written with it", async (context) => {
  const { channel, closeOther } = open(context);
  channel.send(frame);
  closeOther();
  channel.sendSoon(frame);
  channel.sendSoon(frame);
  assert.equal(channel.firstLost, Number.POSITIVE_INFINITY);
  await nextTick();
  assert.equal(channel.firstLost, 2);
  channel.send(frame);
  assert.equal(channel.firstLost, 2);
});

test("an immediate frame is sent together with the frames before it, and lost with them", (context) => {
  const { channel, closeOther } = open(context);
  closeOther();
  channel.sendSoon(frame);
  assert.equal(channel.send(frame), 2);
  assert.equal(channel.firstLost, 1);
});
