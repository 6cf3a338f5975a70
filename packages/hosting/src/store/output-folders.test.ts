import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { OutputFolders } from "./output-folders.ts";
import { configOutputFolders, endpointOutputFolders } from "./recorded-outputs.ts";

const owners = (locations: OutputFolders, key: string) => {
  const found = locations.find({ bucket: "b", key });
  return found === null ? null : [...found.owners].toSorted();
};

test("the longest matching folder decides an object's owner", () => {
  const locations = new OutputFolders();
  locations.add({ url: "s3://b/captures", owner: null });
  locations.add({ url: "s3://b/captures/one/", owner: "one" });
  locations.add({ url: "s3://b/answers", owner: "one" });
  locations.add({ url: "s3://b/answers/", owner: "two" });
  assert.deepEqual(owners(locations, "captures/one/x"), ["one"]);
  assert.deepEqual(owners(locations, "captures/gone/x"), []);
  assert.deepEqual(owners(locations, "answers/1.out"), ["one", "two"]);
  for (const key of ["captures", "captures-of-mine/x", "other", ""]) assert.equal(owners(locations, key), null, key);
  assert.equal(locations.find({ bucket: "c", key: "captures/one/x" }), null);
});

test("a folder is an output folder as long as it has an owner", () => {
  const locations = new OutputFolders();
  const location = { url: "s3://b", owner: "one" };
  locations.add(location);
  locations.add(location);
  locations.remove(location);
  assert.deepEqual(owners(locations, "anything"), ["one"]);
  locations.remove(location);
  assert.equal(owners(locations, "anything"), null);
});

test("property: the folder found is the longest one that contains the key", () => {
  const part = fc.constantFrom("a", "b", "", "aa");
  const key = fc.array(part, { maxLength: 5 }).map((parts) => parts.join("/"));
  fc.assert(
    fc.property(fc.array(key, { maxLength: 6 }), key, (folders, sought) => {
      const locations = new OutputFolders();
      for (const folder of folders) locations.add({ url: `s3://b/${folder}`, owner: folder });
      const all = folders.map((folder) => folder.replace(/\/+$/, "")).map((each) => (each === "" ? "" : `${each}/`));
      const longest = all.filter((each) => sought.startsWith(each)).toSorted((x, y) => y.length - x.length)[0];
      assert.equal(locations.find({ bucket: "b", key: sought })?.prefix, longest);
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
