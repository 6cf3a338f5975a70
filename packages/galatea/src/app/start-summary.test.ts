import assert from "node:assert/strict";
import { test } from "node:test";
import { startSummary } from "./start-summary.ts";

const facts = {
  url: "http://127.0.0.1:8770",
  startMs: 507.4,
  dataDirectory: "/data",
  program: "npx galatea",
  confinementGaps: [],
};

test("the start summary has the URL, the data directory, authentication, confinement and the next command", () => {
  assert.equal(
    startSummary({ ...facts, keys: { from: "file", path: "/data/credentials" } }),
    `Galatea is up at http://127.0.0.1:8770 (507 ms)
  data: /data
  authentication: signed requests, keys from /data/credentials
  confinement: models of different tenants are isolated
  next: eval "$(npx galatea env --data /data)" and call it with boto3 or the AWS CLI
`,
  );
});

test("the start summary warns of missing isolation and disabled authentication, and quotes paths for a shell", () => {
  const text = startSummary({ ...facts, dataDirectory: "/it's here", keys: null, confinementGaps: ["users", "disk"] });
  assert.match(text, /authentication: disabled: any process that reaches this address has full access \(--open\)/);
  assert.match(text, /not isolated in: users, disk \(see/);
  assert.ok(text.includes(`--data '/it'\\''s here')"`));
});
