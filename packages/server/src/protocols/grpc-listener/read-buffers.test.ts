import assert from "node:assert/strict";
import { createServer, connect, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { connect as connectSocket, type AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { ReadBuffers } from "./read-buffers.ts";

const headBytes = 9;
const bufferBytes = 20_000;

/** Returns a stream that is watched, like that of a call. While the stream flows, its slices are consumed as they arrive. */
function watched(memory: ReadBuffers) {
  const stream = new Readable({ read: () => {}, highWaterMark: 2 ** 30 });
  const seen: Buffer[] = [];
  memory.watch(stream);
  stream.on("data", (chunk: Buffer) => {
    seen.push(Buffer.from(chunk));
    memory.consumed(chunk);
  });
  return { stream, seen };
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

test("a buffer is freed when the next one arrives if each of its slices was consumed at once, whatever other frames it contains", async () => {
  const memory = new ReadBuffers();
  const [first, second] = [watched(memory), watched(memory)];
  await nextTick();
  const complete = new ArrayBuffer(bufferBytes);
  first.stream.push(Buffer.from(complete, 500, 9000));
  second.stream.push(Buffer.from(complete, 500 + 9000 + headBytes, 1000));
  assert.equal(complete.byteLength, bufferBytes, "the HTTP/2 library may still read it");
  first.stream.push(Buffer.from(new ArrayBuffer(bufferBytes)));
  assert.equal(complete.byteLength, 0);
});

test("a buffer with a slice that a stream has not read is kept", async () => {
  const memory = new ReadBuffers();
  const [reading, unread] = [watched(memory), watched(memory)];
  await nextTick();
  unread.stream.pause();
  for (const streams of [
    [reading, unread],
    [unread, reading],
  ]) {
    const buffer = new ArrayBuffer(bufferBytes);
    streams.forEach(({ stream }, index) => stream.push(Buffer.from(buffer, index * 10_000, 9000)));
    reading.stream.push(Buffer.from(new ArrayBuffer(bufferBytes)));
    assert.equal(buffer.byteLength, bufferBytes);
  }
});

test("no buffer is freed explicitly after a stream had bytes before it was watched", async () => {
  const memory = new ReadBuffers();
  const { stream } = watched(memory);
  await nextTick();
  const shared = new ArrayBuffer(bufferBytes);
  const early = new Readable({ read: () => {} });
  early.push(Buffer.from(shared, 0, 9000));
  memory.watch(early);
  stream.push(Buffer.from(shared, 9000, 9000));
  stream.push(Buffer.from(new ArrayBuffer(bufferBytes)));
  assert.equal(shared.byteLength, bufferBytes);
});

test("a buffer with a slice in a paused stream is kept and read unchanged", async () => {
  const memory = new ReadBuffers();
  const { stream, seen } = watched(memory);
  await nextTick();
  stream.pause();
  const waiting = Buffer.from(new ArrayBuffer(bufferBytes)).fill(1);
  stream.push(waiting);
  stream.push(Buffer.from(new ArrayBuffer(bufferBytes)).fill(2));
  stream.resume();
  await nextTick();
  await nextTick();
  assert.deepEqual(
    seen.map((chunk) => [chunk.length, chunk[0]]),
    [
      [bufferBytes, 1],
      [bufferBytes, 2],
    ],
  );
});

test("a small buffer is left to the garbage collector", async () => {
  const memory = new ReadBuffers();
  const { stream } = watched(memory);
  await nextTick();
  const small = new ArrayBuffer(1000);
  stream.push(Buffer.from(small));
  stream.push(Buffer.from(new ArrayBuffer(bufferBytes)));
  assert.equal(small.byteLength, 1000);
});

test("the last buffer of a connection without calls is freed when the next one arrives, or earlier by the garbage collector", async () => {
  const memory = new ReadBuffers();
  const { stream } = watched(memory);
  await nextTick();
  const last = new ArrayBuffer(bufferBytes);
  stream.push(Buffer.from(last));
  memory.forget();
  let next: ArrayBuffer | null = new ArrayBuffer(bufferBytes);
  const collected = new WeakRef(next);
  stream.push(Buffer.from(next));
  assert.equal(last.byteLength, 0);
  memory.forget();
  next = null;
  await eventually(() => {
    collectGarbage();
    return collected.deref() === undefined;
  });
});

/** Generates frames of several streams, in buffers that may end anywhere. Streams are paused and resumed between the frames. */
test("property: for any frames in a buffer and any paused streams, every stream reads what was sent to it", async () => {
  const frame = fc.record({
    stream: fc.nat(3),
    byteLength: fc.oneof(fc.nat(40), fc.integer({ min: 1, max: 60_000 })),
    /** Index of the stream that is paused before this frame, or resumed if it was paused; null for none. */
    flip: fc.option(fc.nat(2), { nil: null, freq: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(frame, { minLength: 1, maxLength: 25 }),
      fc.integer({ min: 16 * 1024, max: 70_000 }),
      async (frames, readBytes) => {
        const memory = new ReadBuffers();
        // The fourth stream is paused until the end.
        const streams = [watched(memory), watched(memory), watched(memory), watched(memory)];
        await nextTick();
        streams[3]!.stream.pause();
        const sent = streams.map(() => [] as Buffer[]);
        const wire: {
          readonly bytes: Buffer;
          readonly stream: number;
          readonly isHead: boolean;
          readonly flip: number | null;
        }[] = [];
        frames.forEach(({ stream, byteLength, flip }, index) => {
          const content = Buffer.alloc(byteLength, index + 1);
          sent[stream]!.push(content);
          wire.push({ bytes: Buffer.alloc(headBytes, 0xff), stream, isHead: true, flip });
          wire.push({ bytes: content, stream, isHead: false, flip: null });
        });
        let buffer = Buffer.from(new ArrayBuffer(readBytes));
        let at = 0;
        for (const { bytes, stream, isHead, flip } of wire) {
          const flipped = flip === null ? undefined : streams[flip]?.stream;
          if (flipped?.isPaused() === true) flipped.resume();
          else flipped?.pause();
          if (flipped !== undefined) await nextTick();
          for (let from = 0; from < bytes.length;) {
            const used = bytes.copy(buffer, at, from);
            const slice = buffer.subarray(at, at + used);
            if (!isHead) streams[stream]!.stream.push(slice);
            at += used;
            from += used;
            if (at < readBytes) continue;
            buffer = Buffer.from(new ArrayBuffer(readBytes));
            at = 0;
          }
        }
        for (const { stream } of streams) stream.resume();
        await nextTick();
        await nextTick();
        for (const [index, { seen }] of streams.entries())
          assert.deepEqual(Buffer.concat(seen), Buffer.concat(sent[index]!));
      },
    ),
    { numRuns: 200 },
  );
});

/** Opens a server of node:http2 that checks the bytes of each of its streams: byte `n` of stream `s` must be `(n * 7 + s) % 251`. */
async function openServer(context: TestContext) {
  const freed: number[] = [];
  const memories = new Map<ServerHttp2Session, ReadBuffers>();
  const server = createServer({ settings: { initialWindowSize: 2 ** 22 }, maxSessionMemory: 256 });
  server.on("session", (session) => memories.set(session, new ReadBuffers()));
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const memory = memories.get(stream.session as ServerHttp2Session)!;
    const isSlow = headers["x-slow"] === "1";
    let [at, wrong, lastBuffer]: [number, number, ArrayBufferLike | null] = [0, 0, null];
    memory.watch(stream);
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      for (const byte of chunk) if (byte !== (at++ * 7 + stream.id!) % 251) wrong++;
      if (lastBuffer !== null && lastBuffer !== chunk.buffer && lastBuffer.byteLength === 0) freed.push(1);
      lastBuffer = chunk.buffer;
      memory.consumed(chunk);
      if (!isSlow || at % 3 !== 0) return;
      stream.pause();
      setImmediate(() => stream.resume());
    });
    stream.on("end", () => {
      if (stream.destroyed) return;
      stream.respond({ ":status": 200 });
      stream.end(`${at} ${wrong}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, freed };
}

test(
  "streams of one connection, fast and slow, read what they were sent while buffers are freed",
  { timeout: 120_000 },
  async (context) => {
    const { port, freed } = await openServer(context);
    const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 256 });
    context.after(() => session.destroy());
    const byteLength = 3_000_000;
    const responses = await Promise.all(
      [0, 1, 2, 3, 4].map(async (index) => {
        const stream = session.request({ ":method": "POST", ":path": "/", "x-slow": index % 2 === 0 ? "0" : "1" });
        await once(stream, "ready").catch(() => {});
        const bytes = Buffer.from(Uint8Array.from({ length: byteLength }, (_, n) => (n * 7 + stream.id!) % 251));
        stream.end(bytes);
        stream.setEncoding("latin1");
        let text = "";
        for await (const chunk of stream) text += chunk;
        return text;
      }),
    );
    assert.deepEqual(
      responses,
      responses.map(() => `${byteLength} 0`),
    );
    assert.ok(freed.length > 10, `${freed.length} buffers were freed`);
  },
);

test(
  "connections that end in the middle of a frame do not affect other connections",
  { timeout: 120_000 },
  async (context) => {
    const { port } = await openServer(context);
    const ends = Array.from({ length: 20 }, async (_, index) => {
      const client = connect(`http://127.0.0.1:${port}`, {
        createConnection: () => connectSocket({ host: "127.0.0.1", port }),
      });
      client.on("error", () => {});
      const stream = client.request({ ":method": "POST", ":path": "/" });
      stream.on("error", () => {});
      stream.write(Buffer.alloc(700_000));
      for (let tickCount = 0; tickCount < 5 * index; tickCount++) await nextTick();
      client.destroy();
    });
    const session = connect(`http://127.0.0.1:${port}`);
    context.after(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":path": "/" });
    await once(stream, "ready").catch(() => {});
    stream.end(Buffer.from(Uint8Array.from({ length: 5_000_000 }, (_, n) => (n * 7 + stream.id!) % 251)));
    stream.setEncoding("latin1");
    let text = "";
    for await (const chunk of stream) text += chunk;
    await Promise.all(ends);
    assert.equal(text, "5000000 0");
  },
);
