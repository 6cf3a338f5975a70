import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { completeConfig } from "./complete-config.ts";
import { parseConfigText } from "./parse-text.ts";
import { printConfigJsonText } from "./print-json.ts";

interface Golden {
  readonly models: Readonly<Record<string, { readonly pbtxt: string; readonly printed: string }>>;
}

const golden = JSON.parse(readFileSync(new URL("./golden/printed-configs.json", import.meta.url), "utf8")) as Golden;

suite("the printed configuration is the original's, byte for byte", () => {
  for (const [name, { pbtxt, printed }] of Object.entries(golden.models)) {
    test(name, () => {
      const config = completeConfig(parseConfigText(pbtxt, "config.pbtxt"), {
        directoryName: name,
        servedName: name,
        versionEntries: ["model.py"],
        gpuCount: 0,
      });
      // Newer than the recording: ensembles print max_inflight_requests.
      assert.equal(printConfigJsonText(config).replace(',"max_inflight_requests":0', ""), printed);
    });
  }
});
