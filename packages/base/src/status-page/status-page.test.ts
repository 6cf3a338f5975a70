import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptsHtml, statusPage, statusPageHeaders } from "./index.ts";

const content = { title: "Galatea 0.1.0", facts: [], table: null, links: [] };

test("the page is served to browsers by their Accept header, and not to clients that accept anything", () => {
  for (const accept of ["text/html,application/xhtml+xml;q=0.9", "application/json, text/html;q=0.5", "TEXT/HTML"])
    assert.equal(acceptsHtml(accept), true, accept);
  for (const accept of [undefined, "", "*/*", "text/*", "application/json", "text/htmlx", "x/text/html"])
    assert.equal(acceptsHtml(accept), false, accept);
});

test("names and reasons are escaped, and long ones are cut", () => {
  const evil = `<script>alert("1")</script>&'`;
  const row = [evil, "x".repeat(3000)];
  const html = statusPage({
    ...content,
    title: evil,
    facts: [[evil, evil]],
    table: { heading: evil, columns: [evil, ""], rows: [row], rowCount: 1, emptyText: "" },
    links: [{ href: `/"><script>`, text: evil }],
  });
  assert.doesNotMatch(html, /<script|="\/"/);
  assert.equal(html.split("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;").length, 9);
  assert.ok(html.includes(`${"x".repeat(2000)}…`) && !html.includes("x".repeat(2001)));
});

test("the first 500 rows are shown, with how many there are", () => {
  const rows = Array.from({ length: 600 }, (_, number) => [`row-${number}`]);
  const table = { heading: "Models", columns: ["name"], rows, rowCount: 12_000, emptyText: "none" };
  const html = statusPage({ ...content, table });
  assert.equal(html.match(/row-/g)?.length, 500);
  assert.match(html, /Showing the first 500 of 12000 rows\./);
  assert.match(statusPage({ ...content, table: { ...table, rows: [], rowCount: 0 } }), /<p>none<\/p>/);
});

test("the content security policy allows no script and no external load, and the style by its hash", () => {
  const policy = statusPageHeaders["Content-Security-Policy"];
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; /);
  assert.doesNotMatch(policy, /unsafe|script-src|allow-/);
});
