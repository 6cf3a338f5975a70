import assert from "node:assert/strict";
import { test } from "node:test";
import { InstanceFailure, ModelDataError } from "../instances/index.ts";
import { instanceFailureReason } from "./instance-failure-reason.ts";

const begin =
  "The primary container for production variant v did not pass the ping health check. Please check CloudWatch logs for this endpoint. ";
const told = (lastLines: readonly string[], containerName = "primary") =>
  instanceFailureReason(new InstanceFailure("it exited", { containerName, lastLines }), "v");
const error = (text: string) => `E1123 03:25:34.950000 27833 galatea] ${JSON.stringify(text)}`;

test("the first error of the log is the failure's cause, with the line that raised it; later errors are omitted", () => {
  const cause =
    "failed to load 'm' version 1: Internal: ValueError: no\n\nAt:\n  /opt/m.py(3): initialize\n  /opt/w.py(9): run\n";
  assert.equal(
    told(["before", error(cause), error("failed to load: m")]),
    `${begin}(it exited: failed to load 'm' version 1: Internal: ValueError: no, at /opt/m.py(3): initialize; last lines:\nbefore)`,
  );
  assert.equal(
    told([error("ModuleNotFoundError: No module named 'x'. Add its package.\n\nAt:\n  /opt/m.py(1): <module>\n")]),
    `${begin}(it exited: ModuleNotFoundError: No module named 'x'. Add its package. Raised at /opt/m.py(1): <module>)`,
  );
  assert.equal(told([error("short")]), `${begin}(it exited: short)`);
  assert.equal(told(["E1123 03:25:34.950000 1 m.cc:1] as Triton has it"]), `${begin}(it exited: as Triton has it)`);
});

test("a failure reason without an error in the log ends with the last lines of the log", () => {
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  assert.equal(told(lines), `${begin}(it exited; last lines:\n${lines.slice(12).join("\n")})`);
  assert.equal(told([]), `${begin}(it exited)`);
});

test("paths of a container's own files are shown as the container sees them", () => {
  const line = "cannot read /srv/data/instances/i-d5c747760151f894/ml/model/m/1/model.py";
  assert.equal(told([line]), `${begin}(it exited; last lines:\ncannot read /opt/ml/model/m/1/model.py)`);
});

test("a failure reason names the pipeline's container, and an error of the model data is the whole reason", () => {
  assert.match(told([], "featurize"), /^The featurize for production variant v did not pass/);
  assert.equal(instanceFailureReason(new ModelDataError("Failed to download"), "v"), "Failed to download");
  assert.equal(instanceFailureReason(new Error("no room"), "v"), "Production variant v could not be started: no room");
});
