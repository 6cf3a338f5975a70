/** A matched row of the route table, and the values of the `:name` and `#name` segments of its pattern. */
export interface RouteMatch<Row> {
  readonly row: Row;
  readonly values: readonly string[];
}

interface Node<Row> {
  readonly literals: Map<string, Node<Row>>;
  parameter: Node<Row> | null;
  /** The next node for a segment that consists of digits. */
  version: Node<Row> | null;
  row: Row | null;
}

/**
 * Matches paths against patterns such as `/v2/models/:model/versions/#version/infer`. As in Triton, paths are not decoded. `:` matches any
 * non-empty segment, and `#` a segment of digits; literal segments take precedence.
 */
export class RouteTable<Row extends { readonly pattern: string }> {
  readonly #root: Node<Row> = newNode();

  constructor(rows: readonly Row[]) {
    for (const row of rows) {
      let node = this.#root;
      for (const segment of row.pattern.split("/").slice(1)) node = childFor(node, segment);
      node.row = row;
    }
  }

  match(path: string): RouteMatch<Row> | null {
    if (path.charCodeAt(0) !== 0x2f) return null;
    const segments = path.split("/");
    const values: string[] = [];
    const row = find(this.#root, segments, 1, values);
    return row === null ? null : { row, values };
  }
}

function newNode<Row>(): Node<Row> {
  return { literals: new Map(), parameter: null, version: null, row: null };
}

function childFor<Row>(node: Node<Row>, segment: string): Node<Row> {
  if (segment.startsWith(":")) return (node.parameter ??= newNode());
  if (segment.startsWith("#")) return (node.version ??= newNode());
  let child = node.literals.get(segment);
  if (child === undefined) node.literals.set(segment, (child = newNode()));
  return child;
}

function find<Row>(node: Node<Row>, segments: readonly string[], depth: number, values: string[]): Row | null {
  if (depth === segments.length) return node.row;
  const segment = segments[depth]!;
  const literal = node.literals.get(segment);
  if (literal !== undefined) {
    const row = find(literal, segments, depth + 1, values);
    if (row !== null) return row;
  }
  for (const child of [node.version, node.parameter]) {
    if (child === null || segment === "" || (child === node.version && !isDigits(segment))) continue;
    values.push(segment);
    const row = find(child, segments, depth + 1, values);
    if (row !== null) return row;
    values.pop();
  }
  return null;
}

function isDigits(segment: string): boolean {
  for (let i = 0; i < segment.length; i++) {
    const code = segment.charCodeAt(i);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}
