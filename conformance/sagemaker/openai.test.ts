import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const chat = fileURLToPath(new URL("openai_chat.py", import.meta.url));
const origin = "https://chat.example";
let platform: ScriptedPlatform;

before(async () => {
  platform = await ScriptedPlatform.open(["--allowed-origin", origin]);
  await run("create");
});
after(() => platform[Symbol.asyncDispose]());

async function run(phase: string): Promise<string> {
  const output = await platform.run(chat, [phase]);
  assert(!output.includes("FAILED"), output);
  return output;
}

test("OpenAI's client gets chats, streams, completions, embeddings, responses, the list of models and errors, with keys", async () => {
  await run("chats");
});

test("a web page's fetch gets a preflight, events as they are sent, JSON and errors in OpenAI's format, and may cancel", async () => {
  const { AWS_ENDPOINT_URL: url = "" } = await platform.variables();
  const key = /sagemaker-api-key-\S+/.exec(await run("token"))?.[0] ?? "";
  const path = `${url}/endpoints/conformance-chat/openai/v1/chat/completions`;
  const page = { origin, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" };
  const asks = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
  };
  const preflight = await fetch(path, { method: "OPTIONS", headers: { ...page, ...asks } });
  assert.deepEqual([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, origin]);
  assert.equal(preflight.headers.get("access-control-allow-headers"), "authorization,content-type");
  const request = (message: string, more: object, signal: AbortSignal | null = null) =>
    fetch(path, {
      method: "POST",
      headers: { ...page, authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "any", messages: [{ role: "user", content: message }], ...more }),
      signal,
    });
  const complete = await request("one two", {});
  assert.deepEqual([complete.status, complete.headers.get("content-type")], [200, "application/json"]);
  assert.equal(complete.headers.get("access-control-allow-origin"), origin);
  const { choices } = (await complete.json()) as { choices: [{ message: { content: string } }] };
  assert.equal(choices[0].message.content, "two one");
  const left = new AbortController();
  const endless = await request("endless", { stream: true }, left.signal);
  assert.match(endless.headers.get("content-type") ?? "", /^text\/event-stream/);
  const found: string[] = [];
  for await (const event of events(endless)) {
    found.push((JSON.parse(event) as { choices: [{ delta: { content: string } }] }).choices[0].delta.content);
    if (found.length === 3) break;
  }
  assert.deepEqual(found, ["endless ", "endless ", "endless "]);
  left.abort();
  const last: string[] = [];
  for await (const event of events(await request("one two", { stream: true }))) last.push(event);
  assert.deepEqual([last.length, last.at(-1)], [4, "[DONE]"]);
  const refused = await request("raise", { stream: true });
  const { error } = (await refused.json()) as { error: { message: string } };
  assert.deepEqual([refused.status, error.message], [500, "no such word"]);
});

/** Yields events as an EventSource reads them: the text after `data: `. */
async function* events(response: Response): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const [...complete] = (text + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n\n");
    text = complete.pop() ?? "";
    for (const event of complete) yield event.replace(/^data: /, "");
  }
}

test("OpenAI's client calls inference components", async () => {
  await run("components");
});
