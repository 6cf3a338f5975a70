import assert from "node:assert/strict";
import { test } from "node:test";
import { withForwardedHeaders } from "./forwarded-headers.ts";

const own = new Map([["kept", true]]);

test("headers become parameters under their names as sent; the last of one name counts", () => {
  const raw = [
    "X-User",
    "ann",
    "other",
    "no",
    "x-id",
    "1",
    "x-id",
    "2",
    "X-Name",
    Buffer.from("grüße").toString("latin1"),
  ];
  assert.deepEqual(
    [...withForwardedHeaders(own, raw, /x-/i)],
    [
      ["kept", true],
      ["X-User", "ann"],
      ["x-id", "2"],
      ["X-Name", "grüße"],
    ],
  );
  assert.equal(withForwardedHeaders(own, raw, /nothing/i), own);
  assert.equal(withForwardedHeaders(own, raw, null), own);
});

test("a header that is not valid UTF-8 is read as Latin-1", () => {
  assert.equal(withForwardedHeaders(own, ["x-a", "gr\u00fcn"], /x-a/).get("x-a"), "gr\u00fcn");
});

test("a header with a reserved name is rejected; the stream's own header is neither rejected nor forwarded", () => {
  for (const name of ["sequence_id", "Priority", "triton_final_response"])
    assert.throws(() => withForwardedHeaders(own, [name, "1"], /.*/), {
      code: "INVALID_ARG",
      message: `header '${name}' is reserved for Triton usage and cannot be forwarded.`,
    });
  assert.equal(withForwardedHeaders(own, ["triton_grpc_error", "true"], /.*/), own);
});
