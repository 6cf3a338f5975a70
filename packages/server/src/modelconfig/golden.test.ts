import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { mergeAutoComplete } from "./auto-complete.ts";
import { completeConfig } from "./complete-config.ts";
import { parseConfigText } from "./parse-text.ts";
import { printConfigJsonText } from "./print-json.ts";

interface Golden {
  readonly models: Readonly<Record<string, { readonly pbtxt: string; readonly printed: string }>>;
  /** A model without config.pbtxt: the configuration that its `auto_complete_config` received, and the completed configuration. */
  readonly autoCompleted: { readonly handedOut: string; readonly printed: string };
}

const golden = JSON.parse(readFileSync(new URL("./golden/printed-configs.json", import.meta.url), "utf8")) as Golden;

suite("the printed configuration is Triton's, byte for byte", () => {
  for (const [name, { pbtxt, printed }] of Object.entries(golden.models)) {
    test(name, () => {
      const config = completeConfig(parseConfigText(pbtxt, "config.pbtxt"), {
        directoryName: name,
        servedName: name,
        versionEntries: ["model.py"],
        gpuCount: 0,
      });
      // The printed texts were recorded before ensembles had max_inflight_requests.
      assert.equal(printConfigJsonText(config).replace(',"max_inflight_requests":0', ""), printed);
    });
  }
});

test("a model without config.pbtxt gets and completes the same configurations as in Triton", () => {
  const context = { directoryName: "auto", servedName: "auto", versionEntries: ["model.py"], gpuCount: 0 };
  const config = completeConfig(parseConfigText("", "config.pbtxt"), context);
  assert.equal(printConfigJsonText(config), golden.autoCompleted.handedOut);
  const found = {
    input: [{ name: "A", data_type: "TYPE_FP32", dims: [4] }],
    output: [{ name: "B", data_type: "TYPE_FP32", dims: [4] }],
    max_batch_size: 4,
    dynamic_batching: {},
  };
  assert.equal(printConfigJsonText(mergeAutoComplete(config, found)), golden.autoCompleted.printed);
});
