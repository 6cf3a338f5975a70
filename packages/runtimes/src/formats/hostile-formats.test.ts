import assert from "node:assert/strict";
import { test } from "node:test";
import { PickledObject, PickleError, readPickle } from "./pickle.ts";
import { ZipArchive } from "./zip-archive.ts";
import { ZipError } from "./zip-directory.ts";
import { zipOf } from "./zip-fixture.ts";

const read = (text: string, classes: readonly string[] = []) =>
  readPickle(Buffer.from(text, "latin1"), {
    needs: "test needs",
    names: (name) => (name === "os.fsencode" ? ([value]) => value : null),
    classes: new Set(classes),
    persistent: () => null,
  });

test("a small pickle that would need much memory is rejected", () => {
  const lists = `\x80\x04${"]\x940".repeat(2 ** 20 + 1)}N.`;
  assert.throws(() => read(lists), { name: "PickleError", message: "has more than 1048576 lists", isForeign: true });
  assert.throws(() => read(`\x80\x04${"]".repeat(100_001)}.`), new PickleError("is too deep"));
  assert.throws(() => read("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"), new PickleError("was cut short"));
});

test("a pickled name that is not a string is rejected without printing the value, which may be nested without end", () => {
  const nested = `${"]".repeat(50_000)}${"a".repeat(49_999)}`;
  assert.throws(() => read(`\x80\x04${nested}\x8c\x01x\x93.`), new PickleError("has a name that is not a string"));
});

test("readPickle creates only objects of the classes that the caller names, and keeps only their state", () => {
  const created = read("\x80\x02cown\nThing\n)\x81}X\x01\x00\x00\x00aK\x07sb.", ["own.Thing"]);
  assert.ok(created instanceof PickledObject);
  assert.deepEqual([created.className, [...created.state]], ["own.Thing", [["a", 7]]]);
  const foreign = { name: "PickleError", isForeign: true };
  assert.throws(() => read("\x80\x02cother\nThing\n)\x81."), {
    ...foreign,
    message: "names 'other.Thing', which no test needs; it was not looked up",
  });
  assert.throws(
    () => read("\x80\x02cos\nfsencode\n)\x81."),
    new PickleError("creates an object of something that is not a class"),
  );
  assert.throws(() => read("\x80\x02cown\nThing\n)R.", ["own.Thing"]), /calls 'own.Thing', which is a class/);
  assert.equal(read("\x80\x02cos\nfsencode\nX\x01\x00\x00\x00a\x85R."), "a");
});

test("a zip directory entry is rejected when the file's content does not match it", () => {
  const zip = zipOf({ a: Buffer.from("stored"), b: Buffer.from("deflated".repeat(100)) });
  const archive = new ZipArchive(zip);
  assert.deepEqual(archive.names, ["a", "b"]);
  assert.equal(Buffer.from(archive.read("b")).toString(), "deflated".repeat(100));
  assert.throws(() => archive.read("c"), new ZipError("has no file 'c'"));
  const directoryAt = zip.indexOf("PK\x01\x02", 0, "latin1");
  const changed = (at: number, value: number, name = "a") => {
    const bytes = Buffer.from(zip);
    bytes.writeUInt32LE(value, directoryAt + at);
    return () => new ZipArchive(bytes).read(name);
  };
  assert.throws(changed(24, 7), new ZipError("declares a wrong length of 'a', 7 bytes"));
  assert.throws(changed(20, 0x7fff_ffff), new ZipError("ends within 'a'"));
  assert.throws(changed(42, 0xffff_fff0), new ZipError("has no 'a' at the position in its directory"));
  assert.throws(changed(16, 1), new ZipError("has a 'a' that is damaged"));
  assert.throws(changed(0, 0), new ZipError("has a broken directory"));
  // The directory refers to sizes in a 64-bit extra field, which this file does not have.
  assert.throws(changed(24, 0xffff_ffff), ZipError);
});
