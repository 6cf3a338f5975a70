import assert from "node:assert/strict";
import { test } from "node:test";
import { checkFoundConfig } from "./check-config.ts";
import { completeConfig } from "./complete-config.ts";
import { parseConfigText } from "./parse-text.ts";

const configOf = (label: string, file: string) =>
  completeConfig(
    parseConfigText(
      `backend: "python" default_model_filename: "${file}"
      input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] }
      output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "${label}" }`,
      "config.pbtxt",
    ),
    { directoryName: "m", servedName: "m", versionEntries: ["model.py"], gpuCount: 0 },
  );

for (const label of ["../../etc/passwd", "a/../../../b", "/../../b", "../..", ".././../b"])
  test(`labels are not read from '${label}', which may be another tenant's file`, () => {
    const message = `'label_filename' of output 'Y': '${label}' of model 'm' leads out of the model repository`;
    assert.throws(() => checkFoundConfig(configOf(label, "model.py")), { code: "INVALID_ARG", message });
  });

for (const file of ["../../../other/1/model.onnx", "a/../../../../b"])
  test(`no model is loaded from '${file}', which may be another tenant's`, () => {
    const message = `'default_model_filename' '${file}' of model 'm' leads out of the model repository`;
    assert.throws(() => checkFoundConfig(configOf("", file)), { code: "INVALID_ARG", message });
  });

test("files of the model and of its repository are allowed", () => {
  for (const label of ["labels.txt", "a/../labels.txt", "../labels.txt", "..labels", "/labels.txt", ".../labels.txt"])
    checkFoundConfig(configOf(label, "../../shared/model.py"));
});
