import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const streams = fileURLToPath(new URL("streams.py", import.meta.url));

test("boto3 reads streamed tokens of a decoupled model; a client may disconnect, and a dying container ends its stream with an error", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(streams, [platform.directory], { proxy: true });
  assert(!output.includes("FAILED"), output);
});
