/**
 * DALI's `inputs.Video` in decoupled models, with one response for each batch of sequences, and plugins, which the
 * operator names.
 */
import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type FrameworkFixture, load, openFramework, workerOf } from "./framework-fixture.ts";

let fixture: FrameworkFixture;
let directory: string;
let plugin: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-dali-plugin-"));
  plugin = join(directory, "libplugin.so");
  // Any library can be loaded as a plugin; one without operators adds none.
  const [library] = /\S*\/libm\.so\S*/.exec(readFileSync("/proc/self/maps", "latin1")) as RegExpExecArray;
  copyFileSync(library, plugin);
  const flags = [`--backend-config=dali,plugin_libs=${plugin}`];
  fixture = await openFramework("dali", [], { script: "dali_video.py", flags });
});
after(async () => {
  await fixture?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

/**
 * A VP9 video of 17 frames of 32x16 pixels. All pixels of a frame have one gray value, which starts at 10 and rises by
 * 12.
 */
const seventeenFrames = readFileSync(new URL("seventeen-frames.webm", import.meta.url));
const [framesOfSequence, frameBytes] = [5, 16 * 32 * 3];

interface Event {
  readonly error?: string;
  readonly frames?: readonly number[];
}

async function streamed(model: string, video: Uint8Array): Promise<readonly Event[]> {
  const url = `http://127.0.0.1:${fixture.server.httpPort}/v2/models/${model}/generate_stream`;
  const body = JSON.stringify({ video: [...video] });
  const response = await fetch(url, { method: "POST", body, signal: AbortSignal.timeout(60_000) });
  const events = (await response.text()).split("\n\n").filter((event) => event !== "");
  return events.map((event) => JSON.parse(event.replace(/^data: /, "")) as Event);
}

/** Returns the gray value of each frame of a response. Throws if a pixel of a frame differs from it. */
function greysOf({ frames, error }: Event): readonly number[] {
  assert.equal(error, undefined);
  return Array.from({ length: (frames as number[]).length / frameBytes }, (_, index) => {
    const pixels = (frames as number[]).slice(index * frameBytes, (index + 1) * frameBytes);
    const mean = pixels.reduce((sum, pixel) => sum + pixel, 0) / frameBytes;
    assert.ok(pixels.every((pixel) => Math.abs(pixel - mean) < 4));
    return mean;
  });
}

const greys = Array.from({ length: 17 }, (_, index) => 10 + 12 * index);

function assertGreys(responses: readonly Event[], expected: readonly (readonly number[])[]): void {
  const found = responses.map(greysOf);
  assert.deepEqual(
    found.map(({ length }) => length),
    expected.map(({ length }) => length),
  );
  for (const [index, grey] of expected.flat().entries())
    assert.ok(
      Math.abs((found.flat()[index] as number) - grey) < 4,
      `frame ${index}: ${found.flat()[index]} of ${grey}`,
    );
}

test("a video is returned in responses of one batch of frame sequences each, and the next video starts from its first frame", async () => {
  const total = 3 * framesOfSequence;
  for (const [model, rest] of [
    ["padded", [...greys.slice(total), 0, 0, 0]],
    ["mixed", [...greys.slice(total), 0, 0, 0]],
    ["partial", greys.slice(total)],
  ] as const) {
    assert.equal(await load(fixture.server, model), null);
    for (let time = 0; time < 2; time += 1)
      assertGreys(await streamed(model, seventeenFrames), [greys.slice(0, total), rest]);
  }
});

test("an invalid video fails with an error, a truncated one has fewer frames, and the model keeps responding", async () => {
  const refused = await streamed("padded", Buffer.from("this is no video"));
  assert.equal(refused.length, 1);
  assert.match(refused[0]?.error ?? "", /^Runtime error: .*Failed to create video decoder/s);
  for (let cut = 1; cut < 8; cut += 1) {
    const events = await streamed("padded", seventeenFrames.subarray(0, (cut * seventeenFrames.length) / 8));
    assert.ok(events.length > 0 && events.length <= 3, `${events.length} answers`);
  }
  assert.equal((await streamed("padded", seventeenFrames)).length, 2);
});

test("a decoupled DALI model without a video input sends one response", async () => {
  assert.equal(await load(fixture.server, "plain"), null);
  assert.deepEqual(
    (await streamed("plain", Uint8Array.of(3, 1, 2))).map(({ frames }) => frames),
    [[3, 1, 2]],
  );
});

test("DALI plugins are loaded when the operator names them, and a model's configuration cannot name any", async () => {
  const maps = readFileSync(`/proc/${await workerOf(fixture, "plain")}/maps`, "latin1");
  assert.ok(maps.includes(plugin));
  assert.match(
    (await load(fixture.server, "refuse_plugin")) ?? "",
    /parameter 'plugin_libs' is not read from a model's configuration/,
  );
});

test("a video input is rejected with advice in a model that is not decoupled or has other inputs", async () => {
  assert.match((await load(fixture.server, "refuse_coupled")) ?? "", /such a model needs model_transaction_policy/);
  assert.match(
    (await load(fixture.server, "refuse_two_inputs")) ?? "",
    /is a video: a pipeline with a video has no other input/,
  );
});
