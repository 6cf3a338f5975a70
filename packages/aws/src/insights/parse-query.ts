import { QueryTokenReader } from "./parse-expression.ts";
import {
  aggregateNames,
  QueryError,
  type Aggregate,
  type AggregateName,
  type QueryCommand,
  type SortKey,
} from "./query.ts";
import { tokenizeQuery, type QueryToken } from "./query-tokens.ts";

/** Maximum number of rows of a query's result. */
export const queryRowsMax = 10_000;
const commandsMax = 100;
const fieldsMax = 200;

/** Commands of the language that are not implemented. */
const unsupportedCommands: ReadonlySet<string> = new Set([
  "addtotals",
  "anomaly",
  "diff",
  "filterindex",
  "join",
  "lookup",
  "pattern",
  "source",
  "unmask",
  "unnest",
]);

/** Parses a query in the CloudWatch Logs Insights query language. Throws QueryError. */
export function parseQuery(text: string): readonly QueryCommand[] {
  const reader = new QueryTokenReader(text, tokenizeQuery(text));
  const commands: QueryCommand[] = [];
  // A query may begin with the command separator.
  reader.consumeSign("|");
  do commands.push(command(reader));
  while (reader.consumeSign("|"));
  if (reader.next.kind !== "end") throw reader.unexpected("the end of the command");
  if (commands.length > commandsMax)
    throw new QueryError(`a query may have at most ${commandsMax} commands`, 0, text.length);
  return commands;
}

function command(reader: QueryTokenReader): QueryCommand {
  const word = reader.consume();
  const name = word.kind === "name" ? word.text.toLowerCase() : "";
  switch (name) {
    case "fields":
    case "display":
      return {
        do: name,
        of: few(
          reader,
          word,
          reader.list(() => reader.namedExpression()),
        ),
      };
    case "filter":
      return { do: "filter", condition: reader.expression() };
    case "parse":
      return parse(reader);
    case "stats": {
      const aggregates = few(
        reader,
        word,
        reader.list(() => aggregate(reader)),
      );
      const by = reader.consumeKeyword("by")
        ? few(
            reader,
            word,
            reader.list(() => reader.namedExpression()),
          )
        : [];
      return { do: "stats", aggregates, by };
    }
    case "sort":
    case "order":
      if (name === "order" && !reader.consumeKeyword("by")) throw reader.unexpected("by");
      return {
        do: "sort",
        by: few(
          reader,
          word,
          reader.list(() => sortKey(reader)),
        ),
      };
    case "limit":
    case "head":
      return { do: "limit", count: limit(reader) };
    case "dedup":
      return {
        do: "dedup",
        by: few(
          reader,
          word,
          reader.list(() => reader.expression()),
        ),
      };
    default:
      if (unsupportedCommands.has(name))
        throw new QueryError(`the command ${name} is not implemented by this server`, word.start, word.end);
      throw reader.error("a command expected", word);
  }
}

function few<Item>(reader: QueryTokenReader, word: QueryToken, items: readonly Item[]): readonly Item[] {
  if (items.length > fieldsMax) throw reader.error(`a command may have at most ${fieldsMax} fields`, word);
  return items;
}

function limit(reader: QueryTokenReader): number {
  const word = reader.consume();
  if (word.kind !== "number" || !Number.isInteger(word.value) || word.value < 1 || word.value > queryRowsMax) {
    throw reader.error(`a whole number from 1 to ${queryRowsMax} expected`, word);
  }
  return word.value;
}

function sortKey(reader: QueryTokenReader): SortKey {
  const expression = reader.expression();
  const isDescending = reader.consumeKeyword("desc");
  if (!isDescending) reader.consumeKeyword("asc");
  return { expression, isDescending };
}

function parse(reader: QueryTokenReader): QueryCommand {
  const of = { is: "field" as const, name: reader.fieldName() };
  const word = reader.consume();
  if (word.kind === "expression") {
    const names = reader.checkedExpression(word, word.text).names.filter((name) => name !== null);
    const input = reader.consumeKeyword("as") ? reader.list(() => reader.fieldName()) : null;
    if (input === null && names.length === 0)
      throw reader.error("a regular expression with a named group expected", word);
    return { do: "parse", of, pattern: { kind: "expression", text: word.text }, names: input ?? names };
  }
  if (word.kind !== "text") throw reader.error("a text or a regular expression expected", word);
  if (!reader.consumeKeyword("as")) throw reader.unexpected("as");
  const names = reader.list(() => reader.fieldName());
  const count = word.text.split("*").length - 1;
  if (count !== names.length) throw reader.error(`${count} names expected, one for each * ,`, word);
  return { do: "parse", of, pattern: { kind: "glob", text: word.text }, names };
}

function aggregate(reader: QueryTokenReader): Aggregate {
  const word = reader.consume();
  const of = word.kind === "name" ? aggregateNames.find((name) => name === word.text.toLowerCase()) : undefined;
  if (of === undefined) throw reader.error("an aggregation such as count(*)", word);
  const { expression, percent } = aggregated(reader, of);
  const text = reader.textFrom(word.start);
  return { name: reader.consumeKeyword("as") ? reader.fieldName() : text, of, expression, percent };
}

function aggregated(reader: QueryTokenReader, of: AggregateName): Pick<Aggregate, "expression" | "percent"> {
  reader.expectSign("(");
  if (of === "count" && (reader.consumeSign("*") ? reader.consumeSign(")") : reader.consumeSign(")"))) {
    return { expression: null, percent: 0 };
  }
  const expression = reader.expression();
  let percent = 50;
  if (of === "pct") {
    reader.expectSign(",");
    const word = reader.consume();
    if (word.kind !== "number" || word.value < 0 || word.value > 100) throw reader.error("a percentage expected", word);
    percent = word.value;
  }
  reader.expectSign(")");
  return { expression, percent };
}
