import assert from "node:assert/strict";
import { test } from "node:test";
import { readXml } from "./xml.ts";

const partOf = (number: number) =>
  `<Part><ETag>&quot;e${number}&quot;</ETag><PartNumber>${number}</PartNumber></Part>\n`;
const numbers = Array.from({ length: 10_000 }, (_, index) => index + 1);
const parts = numbers.map(partOf).join("");
const open = '<?xml version="1.0" encoding="UTF-8"?>\n<Upload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">';

/** Returns the parsed document, and the number of event loop ticks that parsing took. */
async function read(text: string) {
  let turnCount = 0;
  const nextTick = () => {
    turnCount++;
    return Promise.resolve();
  };
  const { Part } = await readXml(Buffer.from(text), "Upload", { nextTick }, "Part");
  return { Part, turnCount };
}

test("a long list that arrives in chunks parses as one that arrives at once", async () => {
  const expected = numbers.map((number) => ({ ETag: `"e${number}"`, PartNumber: String(number) }));
  const inPieces = await read(`${open}${parts}</Upload>`);
  assert.deepEqual(inPieces.Part, expected);
  assert.ok(inPieces.turnCount >= parts.length / 2 ** 16, `${inPieces.turnCount} turns`);
  // The end tag of an element in a comment does not end an element, so a document with comments is not split.
  const complete = await read(`${open}<!-- ${parts} -->${parts}</Upload>`);
  assert.deepEqual([complete.Part, complete.turnCount], [expected, 1]);
  const prefixed = parts.replaceAll(/<(\/?)(\w)/g, "<$1s3:$2");
  const { Part, turnCount } = await read(`<s3:Upload xmlns:s3='x'>${prefixed}</s3:Upload>`);
  assert.deepEqual([Part, turnCount > 5], [expected, true]);
});

test("a long malformed document is rejected, wherever the error is", async () => {
  const half = parts.slice(0, parts.length / 2);
  for (const text of [
    `${open}${parts}`,
    `${open}${parts}</Other>`,
    `${open}${half}${parts}</Upload>`,
    `${open}${parts}</Upload>${open}${parts}</Upload>`,
    `${open}${parts}<Part></Upload>`,
    `${open}${parts}</Part></Upload>`,
    `${open}<More>${parts}</More></Upload>`,
    `${open}${parts}</Upload>rest`,
    `<!DOCTYPE Upload [<!ENTITY a "b">]>${open}${parts}</Upload>`,
  ])
    await assert.rejects(read(text), { code: "MalformedXML" }, text.slice(-40));
});
