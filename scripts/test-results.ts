// oxlint-disable import/no-default-export -- Node's test runner takes a reporter from a module's default export.
import { relative, resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";

/** One line of the reporter's output, as JSON. */
export type TestResult =
  | { readonly kind: "failed"; readonly file: string; readonly name: string }
  /** A file that ended, whether or not its tests passed. */
  | { readonly kind: "file"; readonly file: string; readonly seconds: number };

/** A reporter for Node's test runner: a line for each test that failed, and one with its duration for each file. */
export default async function* testResults(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    const result = resultOf(event);
    if (result !== null) yield `${JSON.stringify(result)}\n`;
  }
}

function resultOf({ type, data }: TestEvent): TestResult | null {
  if (type !== "test:complete" && type !== "test:fail") return null;
  const file = data.file === undefined ? "" : relative(process.cwd(), data.file);
  // The runner reports a file as a test with the file's name, and its failure only if the file ended before its tests.
  const isFile = resolve(data.name) === data.file;
  if (type === "test:complete") return isFile ? { kind: "file", file, seconds: data.details.duration_ms / 1000 } : null;
  // A test that failed only because an inner test failed adds no information.
  if (failureType(data.details.error) === "subtestsFailed") return null;
  return { kind: "failed", file, name: isFile ? "the file failed outside its tests" : data.name };
}

function failureType(error: unknown): unknown {
  return (error as { readonly failureType?: unknown } | undefined)?.failureType;
}
