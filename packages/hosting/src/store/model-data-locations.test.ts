import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { parseS3Uri } from "../definitions/index.ts";
import { ModelDataLocations } from "./model-data-locations.ts";

test("property: an object is model data while a model's location is its key or a prefix of it", () => {
  const key = fc.string({ unit: fc.constantFrom("a", "b", "/", "é"), maxLength: 5 });
  const bucket = fc.constantFrom("one", "two");
  const url = fc.tuple(bucket, key).map(([name, path]) => `s3://${name}/${path}`);
  fc.assert(
    fc.property(fc.array(url, { maxLength: 12 }), fc.array(fc.nat()), bucket, key, (urls, removals, name, path) => {
      const locations = new ModelDataLocations();
      const left = [...urls];
      for (const each of urls) locations.add(each);
      for (const at of removals) {
        const [removed] = left.splice(at % (left.length + 1), 1);
        if (removed !== undefined) locations.remove(removed);
      }
      const isCovered = left.some((each) => {
        const destination = parseS3Uri(each);
        return destination?.bucket === name && path.startsWith(destination.key);
      });
      assert.equal(locations.covers({ bucket: name, key: path }), isCovered);
    }),
  );
});

test("a location that is no S3 URI is no location of model data", () => {
  assert.equal(parseS3Uri("https://bucket.s3.amazonaws.com/%zz"), null);
  const locations = new ModelDataLocations();
  locations.add("https://s3.amazonaws.com/bucket/%zz");
  locations.remove("https://s3.amazonaws.com/bucket/%zz");
  assert.equal(locations.covers({ bucket: "bucket", key: "%zz" }), false);
});
