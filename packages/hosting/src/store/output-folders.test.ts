import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { OutputFolders } from "./output-folders.ts";
import { configOutputFolders, endpointOutputFolders } from "./recorded-outputs.ts";

const owners = (places: OutputFolders, key: string) => {
  const found = places.find({ bucket: "b", key });
  return found === null ? null : [...found.owners].toSorted();
};

test("the longest matching folder decides an object's owner", () => {
  const places = new OutputFolders();
  places.add({ url: "s3://b/captures", owner: null });
  places.add({ url: "s3://b/captures/one/", owner: "one" });
  places.add({ url: "s3://b/answers", owner: "one" });
  places.add({ url: "s3://b/answers/", owner: "two" });
  assert.deepEqual(owners(places, "captures/one/x"), ["one"]);
  assert.deepEqual(owners(places, "captures/gone/x"), []);
  assert.deepEqual(owners(places, "answers/1.out"), ["one", "two"]);
  for (const key of ["captures", "captures-of-mine/x", "other", ""]) assert.equal(owners(places, key), null, key);
  assert.equal(places.find({ bucket: "c", key: "captures/one/x" }), null);
});

test("a folder is an output folder as long as it has an owner", () => {
  const places = new OutputFolders();
  const place = { url: "s3://b", owner: "one" };
  places.add(place);
  places.add(place);
  places.remove(place);
  assert.deepEqual(owners(places, "anything"), ["one"]);
  places.remove(place);
  assert.equal(owners(places, "anything"), null);
});

test("property: the folder found is the longest one that contains the key", () => {
  const part = fc.constantFrom("a", "b", "", "aa");
  const key = fc.array(part, { maxLength: 5 }).map((parts) => parts.join("/"));
  fc.assert(
    fc.property(fc.array(key, { maxLength: 6 }), key, (folders, sought) => {
      const places = new OutputFolders();
      for (const folder of folders) places.add({ url: `s3://b/${folder}`, owner: folder });
      const all = folders.map((folder) => folder.replace(/\/+$/, "")).map((each) => (each === "" ? "" : `${each}/`));
      const longest = all.filter((each) => sought.startsWith(each)).toSorted((x, y) => y.length - x.length)[0];
      assert.equal(places.find({ bucket: "b", key: sought })?.prefix, longest);
    }),
  );
});

test("an endpoint's outputs are its responses and captures, and those of its configuration have no single owner", () => {
  const configs = {
    asyncInference: { OutputConfig: { S3OutputPath: "s3://b//out/", S3FailurePath: "" } },
    dataCapture: { DestinationS3Uri: "s3://b/captures/", InitialSamplingPercentage: 1, CaptureOptions: [] },
  };
  assert.deepEqual(configOutputFolders(configs as never), [
    { url: "s3://b/out/", owner: null },
    { url: "s3://b/captures/", owner: null },
  ]);
  assert.deepEqual(endpointOutputFolders({ name: "e", generations: [configs] } as never), [
    { url: "s3://b/out/", owner: "e" },
    { url: "s3://b/captures/", owner: null },
    { url: "s3://b/captures/e", owner: "e" },
  ]);
});
