// oxlint-disable import/no-default-export -- Node's test runner takes a reporter from a module's default export.
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

/** A reporter for Node's test runner: a line for each test that failed, with its file. */
export default async function* failedTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    // A test that failed only because one inside it did adds nothing.
    if (type !== "test:fail" || failureType(data.details.error) === "subtestsFailed") continue;
    const file = data.file === undefined ? "" : relative(process.cwd(), data.file);
    // A file that ended before its tests did is reported as a test with the file's name.
    const name = data.name === file || data.name === data.file ? "the file failed outside its tests" : data.name;
    yield `${file}: ${name}\n`;
  }
}

function failureType(error: unknown): unknown {
  return (error as { readonly failureType?: unknown } | undefined)?.failureType;
}
