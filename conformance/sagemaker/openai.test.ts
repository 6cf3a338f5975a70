import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const chat = fileURLToPath(new URL("openai_chat.py", import.meta.url));

test("OpenAI's own client: chats whole and as streams, completions, embeddings, models, errors, keys", async () => {
  await using platform = await ScriptedPlatform.open();
  const output = await platform.run(chat, [], { environment: "openai" });
  assert(!output.includes("FAILED"), output);
});
