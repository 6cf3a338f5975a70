import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import { BundleAttributes, memberOf } from "./bundle-attributes.ts";

/** Maximum size of one file of a bundle, and of all its files together. */
const fileBytesMax = 256 * 2 ** 20;
const bundleBytesMax = 1024 * 2 ** 20;
const nodesMax = 10_000;
/** Maximum nesting depth of pipelines. */
const depthMax = 32;

/** A folder of a bundle with a model: `model.json`, further files, and for a step of a pipeline `node.json`. */
export class BundleFolder {
  readonly #path: string;
  readonly #depth: number;
  readonly #count: BundleCount;
  /** Name of the folder in error messages. */
  readonly name: string;

  private constructor(path: string, depth: number, count: BundleCount) {
    this.#path = path;
    this.#depth = depth;
    this.#count = count;
    this.name = path.slice(count.root.length + 1);
  }

  static root(directory: string): BundleFolder {
    const count = { root: directory, nodes: 0, bytes: 0 };
    const bundle = new BundleFolder(directory, 0, count);
    const format = memberOf(bundle.json("bundle.json"), "format");
    if (format !== "json") {
      throw new InferenceError(
        "UNSUPPORTED",
        `the bundle has the format '${String(format).slice(0, 100)}', only json is supported`,
      );
    }
    return bundle.folder("root");
  }

  /** Returns a subfolder. Names are untrusted: a name with a path separator, `.` and `..` are rejected. */
  folder(name: string): BundleFolder {
    // oxlint-disable-next-line no-control-regex
    if (!/^[^/\\\u0000]{1,255}$/.test(name) || name === "." || name === "..") {
      throw invalidBundle(`has a step with the name '${name.slice(0, 100)}'`);
    }
    this.#count.nodes += 1;
    if (this.#count.nodes > nodesMax)
      throw new InferenceError("UNSUPPORTED", `the bundle has more than ${nodesMax} steps`);
    if (this.#depth === depthMax)
      throw new InferenceError("UNSUPPORTED", `the bundle is deeper than ${depthMax} folders`);
    return new BundleFolder(join(this.#path, name), this.#depth + 1, this.#count);
  }

  text(name: string): string {
    const path = join(this.#path, name);
    const about = path.slice(this.#count.root.length + 1);
    try {
      const found = statSync(path);
      if (!found.isFile()) throw invalidBundle(`has '${about}', which is not a file`);
      this.#count.bytes += found.size;
      if (found.size > fileBytesMax || this.#count.bytes > bundleBytesMax) {
        throw new InferenceError("UNSUPPORTED", `the bundle is too large at '${about}'`);
      }
      return readFileSync(path, "utf8");
    } catch (error) {
      if (error instanceof InferenceError) throw error;
      throw new InferenceError("INVALID_ARG", `the bundle has no '${about}' that can be read`, { cause: error });
    }
  }

  json(name: string): unknown {
    const text = this.text(name);
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new InferenceError("INVALID_ARG", `'${join(this.name, name)}' of the bundle is not valid JSON`, {
        cause: error,
      });
    }
  }

  /** Returns the operator and the attributes in `model.json`. */
  model(): { readonly operator: string; readonly attributes: BundleAttributes } {
    const document = this.json("model.json");
    const operator = memberOf(document, "op");
    if (typeof operator !== "string") throw invalidBundle(`has no operator in '${this.name}'`);
    const members = memberOf(document, "attributes") ?? {};
    if (typeof members !== "object" || members === null) throw invalidBundle(`has no attributes in '${this.name}'`);
    return {
      operator,
      attributes: new BundleAttributes(new Map(Object.entries(members)), `'${this.name}' of the bundle`),
    };
  }

  /** Returns the columns that a step reads and writes, by port. */
  shape(): StepShape {
    const shape = memberOf(this.json("node.json"), "shape");
    return { inputs: this.#sockets(shape, "inputs"), outputs: this.#sockets(shape, "outputs") };
  }

  #sockets(shape: unknown, side: "inputs" | "outputs"): Map<string, string> {
    const listed = memberOf(shape, side);
    if (!Array.isArray(listed)) throw invalidBundle(`has no ${side} in '${this.name}'`);
    const sockets = new Map<string, string>();
    for (const socket of listed) {
      const port = memberOf(socket, "port");
      const column = memberOf(socket, "name");
      if (typeof port !== "string" || typeof column !== "string")
        throw invalidBundle(`has malformed ${side} in '${this.name}'`);
      sockets.set(port, column);
    }
    return sockets;
  }
}

interface BundleCount {
  readonly root: string;
  nodes: number;
  bytes: number;
}

/** Names of columns, by port: the name that a step gives to an input or an output. */
export interface StepShape {
  readonly inputs: ReadonlyMap<string, string>;
  readonly outputs: ReadonlyMap<string, string>;
}

export function invalidBundle(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the bundle ${what}`);
}
