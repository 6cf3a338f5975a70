import assert from "node:assert/strict";
import { test } from "node:test";
import { doubledComments, homeMadeWordsOf, isRiddle, problemsOf, pythonComments, typescriptComments } from "./words.ts";

test("comments of TypeScript are found with their lines, and consecutive lines are one", () => {
  const text = [
    'const url = "http://a"; // Whether it is local.',
    "",
    "/**",
    " * Returns the size,",
    " * in bytes.",
    " */",
    "  // Of a line",
    "  // and the next.",
    "const b = 1;",
  ].join("\n");
  assert.deepEqual(typescriptComments(text), [
    { line: 1, text: "Whether it is local." },
    { line: 3, text: "Returns the size, in bytes." },
    { line: 7, text: "Of a line and the next." },
  ]);
});

test("comments and docstrings of Python are found, strings are not", () => {
  const text = [
    '"""What it does."""',
    'x = "# no comment"  # The same.',
    'y = """',
    "# no comment",
    '"""',
    "# One",
    "# comment.",
  ].join("\n");
  assert.deepEqual(pythonComments(text), [
    { line: 1, text: "What it does." },
    { line: 2, text: "The same." },
    { line: 6, text: "One comment." },
  ]);
});

test("riddles are detected by their first words", () => {
  for (const riddle of [
    "Of its answers.",
    "Whoever waits.",
    "What is asked.",
    "The same for rows.",
    "Whether it ended.",
  ])
    assert.ok(isRiddle(riddle), riddle);
  for (const clear of ["Offset in bytes.", "Returns what was read.", "Assembles parts.", "The sameness of two."])
    assert.ok(!isRiddle(clear), clear);
});

test("home-made words are found in names of every case, and `place` as a verb is none", () => {
  assert.deepEqual(homeMadeWordsOf("ModelPlaces"), ["places"]);
  assert.deepEqual(homeMadeWordsOf("encode_ask"), ["ask"]);
  assert.deepEqual(homeMadeWordsOf("ASK_ID_MAX"), ["ask"]);
  assert.deepEqual(homeMadeWordsOf("placeInstance"), []);
  assert.deepEqual(homeMadeWordsOf("partition"), []);
});

test("a doc comment that follows another is a problem of its file", () => {
  const text = "/** One. */\n/** Two. */\nconst a = 1;\n\n/** Three. */\nconst b = 2;\n";
  assert.deepEqual(doubledComments(text), [2]);
  const words = { path: "a.ts", lines: 6, commentLines: 3, comments: typescriptComments(text) };
  assert.deepEqual(problemsOf({ ...words, doubled: [2], names: [{ name: "Sleeper", line: 4 }] }), [
    "a.ts:2: a doc comment follows another",
    "a.ts:4: Sleeper: sleeper",
  ]);
});
