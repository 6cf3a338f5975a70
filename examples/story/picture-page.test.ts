import assert from "node:assert/strict";
import { test } from "node:test";
import { bestLabels, pictureTable, type PictureResult } from "./picture-results.ts";
import { picturePage } from "./picture-page.ts";

const response: PictureResult = {
  name: `<b>"one" & two.jpg`,
  jpeg: Uint8Array.of(0xff, 0xd8, 0xff),
  scores: [0.25, 0.75],
  best: bestLabels([0.25, 0.75], ["a < b", "c"]),
  firstMs: 700.4,
  warmMs: [30, 10, 20],
};

test("bestLabels returns the five highest scores, with their labels or class numbers", () => {
  const named = bestLabels([0.1, 0.6, 0.3], ["zero", "one"]);
  assert.deepEqual(named, [
    { label: "one", score: 0.6 },
    { label: "class 2", score: 0.3 },
    { label: "zero", score: 0.1 },
  ]);
  assert.equal(
    bestLabels(
      Array.from({ length: 1001 }, () => 0.001),
      [],
    ).length,
    5,
  );
});

test("the page shows pictures, classes and sentences, and escapes their markup", () => {
  const nearest = { index: 0, cosine: 0.5 };
  const sentences = [{ text: "</td><script>alert(1)</script>", nearest }];
  const page = picturePage({ endpoint: "e", answers: [response], sentences, sentencesMs: 12.3 });
  assert.match(page, /<img src="data:image\/jpeg;base64,\/9j\/" alt="&#60;b&#62;&#34;one&#34; &#38; two.jpg">/);
  assert.match(page, /<td>c<td class="number">0\.750<td class="bar"><i style="width:75\.0%">/);
  assert.match(page, /a &#60; b/);
  assert.match(page, /700 ms at first, 20 ms warm/);
  assert.ok(!page.includes("<script>"));
});

test("pictureTable has one line for each picture", () => {
  const [head = "", line = ""] = pictureTable([response]).split("\n");
  assert.match(head, /picture .* first ms {2}warm ms {2}best classes$/);
  assert.match(line, / 700 {7}20 {2}c 0\.750, a < b 0\.250$/);
});
