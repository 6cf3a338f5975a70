import assert from "node:assert/strict";
import { test } from "node:test";
import { completeConfig, parseConfigText } from "../../modelconfig/index.ts";
import { readSessionParameters } from "./session-parameters.ts";

const sessionOf = (text: string) =>
  readSessionParameters(
    completeConfig(parseConfigText(`backend: "onnxruntime" ${text}`, "config.pbtxt"), {
      directoryName: "m",
      servedName: "m",
      versionEntries: ["model.onnx"],
      gpuCount: 0,
    }),
  ).session;

test("a library named in a configuration never reaches a session", () => {
  assert.deepEqual(sessionOf('model_operations { op_library_filename: "tenants-own.so" }'), sessionOf(""));
});
