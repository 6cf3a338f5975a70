import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AlgorithmRequestError, predictXgboost, readPickledBooster } from "../algorithms/index.ts";
import { InferenceError } from "@galatea/base";
import { readXgboostServing } from "./xgboost-models.ts";

/**
 * Models that XGBoost 3.2.0 and 2.1.4 trained on random rows and saved or pickled, and the results of `Booster.predict`
 * for six rows.
 */
interface XgboostVectors {
  readonly rows: readonly (readonly (number | null)[])[];
  readonly models: readonly {
    readonly objective: string;
    readonly booster: "gbtree" | "gblinear";
    readonly version: string;
    readonly predictions: readonly (number | readonly number[])[];
    readonly files: Readonly<Record<string, string>>;
  }[];
}

const vectors = JSON.parse(
  readFileSync(new URL("../../../../conformance/vectors/xgboost-models.json", import.meta.url), "utf8"),
) as XgboostVectors;
const csv = vectors.rows.map((row) => row.map((value) => value ?? "").join(",")).join("\n");
const fileOf = (objective: string, form = "ubj") => {
  const model = vectors.models.find((each) => each.objective === objective && form in each.files);
  return Buffer.from(model?.files[form] ?? assert.fail(form), "base64");
};

type Settings = Readonly<Record<string, string>>;

function servingOf(files: Readonly<Record<string, Buffer>>, settings: Settings = {}) {
  const directory = mkdtempSync(join(tmpdir(), "galatea-xgboost-"));
  try {
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(directory, name), bytes);
    mkdirSync(join(directory, "code"));
    return readXgboostServing(directory, settings).serving;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

interface RequestedCall {
  readonly settings?: Settings;
  readonly body?: string | Buffer;
  readonly contentType?: string;
  readonly accept?: string;
}

function invoke(files: Readonly<Record<string, Buffer>>, requested: RequestedCall = {}) {
  const { body = csv, contentType = "text/csv", accept = "", settings = {} } = requested;
  const response = predictXgboost(servingOf(files, settings), { bytes: Buffer.from(body), contentType, accept });
  return { ...response, text: Buffer.from(response.bytes).toString("utf8") };
}

function refused(files: Readonly<Record<string, Buffer>>, requested: RequestedCall) {
  try {
    invoke(files, requested);
  } catch (error) {
    assert.ok(error instanceof AlgorithmRequestError, String(error));
    return [error.status, error.message];
  }
  return assert.fail("the request was accepted");
}

function assertClose(text: string, expected: XgboostVectors["models"][number]["predictions"], about: string): void {
  const actual = text.trimEnd().split("\n");
  assert.equal(actual.length, expected.length, about);
  for (const [row, line] of actual.entries()) {
    const numbers = line.split(",").map(Number);
    const desired = [expected[row] as number | readonly number[]].flat();
    assert.equal(numbers.length, desired.length, about);
    for (const [at, value] of desired.entries()) {
      assert.ok(Math.abs((numbers[at] as number) - value) <= 1e-6, `${about} row ${row}: ${line} ${desired.join()}`);
    }
  }
}

for (const { objective, booster, version, predictions, files } of vectors.models) {
  test(`a ${booster} model with objective ${objective} of XGBoost ${version} gets the predictions of the library: ${Object.keys(files).join(", ")}`, () => {
    for (const [form, bytes] of Object.entries(files)) {
      const response = invoke({ "xgboost-model": Buffer.from(bytes, "base64"), ".hidden": Buffer.from("x") });
      assert.equal(response.contentType, "text/csv");
      assertClose(response.text, predictions, `${objective} ${form}`);
    }
  });
}

const logistic = { "xgboost-model": fileOf("binary:logistic") };
const pickled = { "xgboost-model": fileOf("binary:logistic", "pickle4") };

test("equal rows get equal predictions from CSV with any delimiter and from libsvm with columns counted from 0 or 1", () => {
  const expected = invoke(logistic).text;
  const libsvm = (shift: number) =>
    vectors.rows
      .map((row) => `1 ${row.flatMap((value, at) => (value === null ? [] : [`${at + shift}:${value}`])).join(" ")}`)
      .join("\n");
  assert.equal(invoke(logistic, { body: `${csv.replaceAll(",", ";")}\n` }).text, expected);
  assert.equal(
    invoke(logistic, { body: csv.replaceAll(",", "\t"), contentType: "text/csv; label_size=1" }).text,
    expected,
  );
  assert.equal(invoke(logistic, { body: libsvm(1), contentType: "text/x-libsvm" }).text, expected);
  assert.equal(invoke(logistic, { body: libsvm(0), contentType: "" }).text, expected);
});

test("responses for every accepted type, transform jobs and SAGEMAKER_INFERENCE_OUTPUT have the formats of SageMaker's container", () => {
  const complete = { body: csv.split("\n")[0] as string };
  const score = invoke(logistic, complete).text.trim();
  const softprob = { "xgboost-model": fileOf("multi:softprob") };
  const classes = invoke(softprob, complete).text.trim().replaceAll(",", ", ");
  const forms = (accept: string, files = logistic) => invoke(files, { ...complete, accept }).text;
  assert.equal(forms("application/json"), `{"predictions": [{"score": ${score}}]}`);
  assert.equal(forms("application/jsonlines"), `{"score": ${score}}\n`);
  assert.equal(forms("application/json", softprob), `{"predictions": [{"score": [${classes}]}]}`);
  assert.equal(invoke(softprob, { ...complete, settings: { SAGEMAKER_BATCH: "True" } }).text, `[${classes}]\n`);
  const settings = { SAGEMAKER_INFERENCE_OUTPUT: "predicted_label, labels,probability,predicted_score" };
  const label = Number(score) > 0.5 ? 1 : 0;
  assert.equal(
    invoke(logistic, { ...complete, settings, accept: "application/json" }).text,
    `{"predictions": [{"predicted_label": ${label}, "labels": [0, 1], "probability": ${score}, "predicted_score": NaN}]}`,
  );
  assert.equal(invoke(logistic, { ...complete, settings }).text, `${label},"[0, 1]",${score},nan`);
});

test("a multi-model container responds in the formats recorded from SageMaker's multi-model server", () => {
  const many = (accept: string, objective = "binary:logistic", more: Settings = {}) => {
    const settings = { SAGEMAKER_MULTI_MODEL: "true", ...more };
    const files = { "xgboost-model": fileOf(objective) };
    const { text, contentType } = invoke(files, { settings, accept, body: "1,2,3,4\n1,,,2" });
    return [contentType, text];
  };
  const single = (objective: string) =>
    invoke({ "xgboost-model": fileOf(objective) }, { body: "1,2,3,4" })
      .text.trim()
      .replaceAll(",", ", ");
  const [one, three] = [single("binary:logistic"), `[${single("multi:softprob")}]`];
  assert.deepEqual(many(""), ["application/json", `[${one}, ${one}]`]);
  assert.deepEqual(many("Application/JSON"), ["Application/JSON", `[${one}, ${one}]`]);
  assert.deepEqual(many("text/csv"), ["text/csv", `${one},${one}`]);
  assert.deepEqual(many("csv", "multi:softprob"), ["csv", `${three},${three}`]);
  assert.deepEqual(many("*/*", "multi:softprob"), ["application/json", `[${three}, ${three}]`]);
  assert.deepEqual(many("csv", "multi:softprob", { SAGEMAKER_BATCH: "True" }), ["csv", `${three}\n${three}\n`]);
  assert.deepEqual(
    refused(logistic, { settings: { SAGEMAKER_MULTI_MODEL: "true" }, accept: "application/jsonlines" }),
    [
      415,
      "Encoding to accept type application/jsonlines failed with exception: application/jsonlines is not an accepted " +
        "Accept type. Please choose one of the following: ['text/csv', 'application/json'].",
    ],
  );
});

test("columns that a CSV row lacks are missing values; a pickled model rejects such a row with status 400", () => {
  assert.equal(invoke(logistic, { body: "1,2" }).text, invoke(logistic, { body: "1,2,," }).text);
  assert.equal(refused(pickled, { body: "1,2" })[0], 400);
});

test("an archive with several models returns the mean of their scores, or the most frequent label", () => {
  const old = fileOf("binary:logistic", "binary");
  const of = (files: Readonly<Record<string, Buffer>>, settings: Settings = {}) =>
    invoke(files, { settings }).text.trim().split("\n").map(Number);
  const [first, second, mean] = [of(logistic), of({ b: old }), of({ ...logistic, b: old })];
  for (const [row, value] of mean.entries()) {
    assert.ok(Math.abs(value - ((first[row] as number) + (second[row] as number)) / 2) <= 1e-7);
  }
  assert.deepEqual(of({ ...logistic, zz: old }, { SAGEMAKER_INFERENCE_ENSEMBLE: "false" }), first);
  const softmax = fileOf("multi:softmax");
  assert.deepEqual(of({ a: softmax, b: softmax, c: softmax }), of({ a: softmax }));
  assert.throws(() => servingOf({ a: softmax, b: old }), /different objectives/);
});

test("invalid types and rows get the statuses 415, 406, 400 and 204 and the texts of SageMaker's container", () => {
  assert.equal(invoke(logistic, { body: "" }).status, 204);
  assert.deepEqual(refused(logistic, { contentType: "image/png" }), [
    415,
    "image/png is not an accepted ContentType: csv, libsvm, parquet, recordio-protobuf, text/csv, text/libsvm, text/x-libsvm, " +
      "application/x-parquet, application/x-recordio-protobuf.",
  ]);
  const [status, message] = refused(logistic, { body: "1,2,3,x" });
  assert.equal(status, 415);
  assert.match(String(message), /^Loading csv data failed with Exception, please ensure data is in csv format:\n/);
  assert.deepEqual(refused(pickled, { body: "1,2,3,4,5" }), [
    400,
    "Unable to evaluate payload provided: Feature size of csv inference data 5 is not consistent with feature size of trained model 4.",
  ]);
  assert.equal(refused(logistic, { body: "1,2,3,4,5" })[0], 400);
  assert.deepEqual(refused(logistic, { contentType: "application/x-parquet" }), [
    415,
    "Content-type application/x-parquet is not supported.",
  ]);
  assert.deepEqual(refused(logistic, { accept: "image/png" }), [
    406,
    "Accept type image/png is not supported. Please use supported accept types: ['application/json', 'application/jsonlines', " +
      "'application/x-recordio-protobuf', 'text/csv'].",
  ]);
  for (const column of [6, 99_999_999, 99_999_999_999]) {
    assert.deepEqual(refused(logistic, { body: `1 1:0 ${column}:1`, contentType: "text/libsvm" }), [
      400,
      `Unable to evaluate payload provided: Feature size of libsvm inference data ${column} is larger than feature size of trained model 4.`,
    ]);
  }
});

test("a pickle is parsed without running code: pickles of anything but a Booster and damaged pickles are rejected", () => {
  const evil = Buffer.from("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.", "latin1");
  assert.throws(
    () => servingOf({ m: evil }),
    /the pickle names 'posix\.system', which no Booster needs; it was not looked up/,
  );
  const stacked = Buffer.from("\x80\x04\x8c\x02os\x8c\x06system\x93.", "latin1");
  assert.throws(() => servingOf({ m: stacked }), /the pickle names 'os\.system'/);
  for (const form of ["pickle2", "pickle5"]) {
    const complete = fileOf("binary:logistic", form);
    for (let length = 0; length < complete.length; length += length < 300 ? 1 : 997) {
      assert.throws(() => readPickledBooster(complete.subarray(0, length)), InferenceError, `${form} ${length}`);
    }
    for (let bit = 0; bit < 8 * complete.length; bit += bit < 400 ? 1 : 1999) {
      const turned = Buffer.from(complete);
      turned[bit >> 3] = (turned[bit >> 3] as number) ^ (1 << (bit & 7));
      try {
        predictXgboost(servingOf({ m: turned }), { bytes: Buffer.from(csv), contentType: "text/csv", accept: "" });
      } catch (error) {
        const isSentence = error instanceof InferenceError || error instanceof AlgorithmRequestError;
        assert.ok(isSentence, `${form} bit ${bit}: ${String(error)}\n${(error as Error).stack}`);
      }
    }
  }
  assert.throws(() => servingOf({}), /no file that could be a model/);
});
