import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readDockerConfig, registryKey } from "./registry-keys.ts";

const keyed = (text: string) => ({ auth: Buffer.from(text).toString("base64") });
const config = {
  auths: {
    "https://index.docker.io/v1/": keyed("hub:h"),
    "registry.example:5000": keyed("me:pass:word"),
    "tokens.example": { identitytoken: "t" },
    "helped.example": {},
  },
};
const read = (image: string) => {
  const key = registryKey(image, config);
  return key === null ? null : (JSON.parse(Buffer.from(key, "base64url").toString()) as unknown);
};

test("the key of an image's registry is sent, and no other", () => {
  const own = { username: "me", password: "pass:word", serveraddress: "registry.example:5000" };
  assert.deepEqual(read("registry.example:5000/team/churn:3"), own);
  const hub = { username: "hub", password: "h", serveraddress: "https://index.docker.io/v1/" };
  for (const image of ["churn:3", "team/churn", "docker.io/team/churn:3"]) assert.deepEqual(read(image), hub, image);
  assert.deepEqual(read("tokens.example/churn"), { identitytoken: "t", serveraddress: "tokens.example" });
  for (const image of ["other.example/churn", "localhost/churn", "helped.example/churn"])
    assert.equal(read(image), null, image);
});

test("a missing file has no keys; a damaged one is an error with its path", async () => {
  const directory = mkdtempSync(join(tmpdir(), "galatea-keys-"));
  try {
    assert.deepEqual(await readDockerConfig(join(directory, "absent.json")), {});
    const damaged = join(directory, "config.json");
    writeFileSync(damaged, "{");
    await assert.rejects(readDockerConfig(damaged), { message: /^the keys of registries in '.*config\.json' cannot/ });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
