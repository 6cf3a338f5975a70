import { QueryReader } from "./parse-expression.ts";
import {
  aggregateNames,
  QueryError,
  type Aggregate,
  type AggregateName,
  type QueryCommand,
  type SortKey,
} from "./query.ts";
import { wordsOf, type QueryWord } from "./query-words.ts";

/** Maximum number of rows of a query's result. */
export const rowsMax = 10_000;
const commandsMax = 100;
const fieldsMax = 200;

/** Commands of the language that are not implemented. */
const refused: ReadonlySet<string> = new Set([
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

/** Parses a query of CloudWatch Logs Insights' own language. Throws QueryError. */
export function parseQuery(text: string): readonly QueryCommand[] {
  const reader = new QueryReader(text, wordsOf(text));
  const commands: QueryCommand[] = [];
  // A query may begin with the separator of commands.
  reader.takesSign("|");
  do commands.push(command(reader));
  while (reader.takesSign("|"));
  if (reader.next.kind !== "end") throw reader.unexpected("the end of the command");
  if (commands.length > commandsMax)
    throw new QueryError(`a query has ${commandsMax} commands at most`, 0, text.length);
  return commands;
}

function command(reader: QueryReader): QueryCommand {
  const word = reader.take();
  const name = word.kind === "name" ? word.text.toLowerCase() : "";
  switch (name) {
    case "fields":
    case "display":
      return {
        do: name,
        of: few(
          reader,
          word,
          reader.list(() => reader.named()),
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
      const by = reader.takesWord("by")
        ? few(
            reader,
            word,
            reader.list(() => reader.named()),
          )
        : [];
      return { do: "stats", aggregates, by };
    }
    case "sort":
    case "order":
      if (name === "order" && !reader.takesWord("by")) throw reader.unexpected("by");
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
      if (refused.has(name))
        throw new QueryError(`the command ${name} is not implemented by this server`, word.start, word.end);
      throw reader.error("a command expected", word);
  }
}

function few<Item>(reader: QueryReader, word: QueryWord, items: readonly Item[]): readonly Item[] {
  if (items.length > fieldsMax) throw reader.error(`a command has ${fieldsMax} fields at most`, word);
  return items;
}

function limit(reader: QueryReader): number {
  const word = reader.take();
  if (word.kind !== "number" || !Number.isInteger(word.value) || word.value < 1 || word.value > rowsMax) {
    throw reader.error(`a whole number from 1 to ${rowsMax} expected`, word);
  }
  return word.value;
}

function sortKey(reader: QueryReader): SortKey {
  const expression = reader.expression();
  const isDescending = reader.takesWord("desc");
  if (!isDescending) reader.takesWord("asc");
  return { expression, isDescending };
}

function parse(reader: QueryReader): QueryCommand {
  const of = { is: "field" as const, name: reader.name() };
  const word = reader.take();
  if (word.kind === "expression") {
    const names = reader.checkedExpression(word, word.text).names.filter((name) => name !== null);
    const given = reader.takesWord("as") ? reader.list(() => reader.name()) : null;
    if (given === null && names.length === 0)
      throw reader.error("a regular expression with a named group expected", word);
    return { do: "parse", of, pattern: { kind: "expression", text: word.text }, names: given ?? names };
  }
  if (word.kind !== "text") throw reader.error("a text or a regular expression expected", word);
  if (!reader.takesWord("as")) throw reader.unexpected("as");
  const names = reader.list(() => reader.name());
  const count = word.text.split("*").length - 1;
  if (count !== names.length) throw reader.error(`${count} names expected, one for each * ,`, word);
  return { do: "parse", of, pattern: { kind: "glob", text: word.text }, names };
}

function aggregate(reader: QueryReader): Aggregate {
  const word = reader.take();
  const of = word.kind === "name" ? aggregateNames.find((name) => name === word.text.toLowerCase()) : undefined;
  if (of === undefined) throw reader.error("an aggregation such as count(*)", word);
  const { expression, percent } = aggregated(reader, of);
  const text = reader.textFrom(word.start);
  return { name: reader.takesWord("as") ? reader.name() : text, of, expression, percent };
}

function aggregated(reader: QueryReader, of: AggregateName): Pick<Aggregate, "expression" | "percent"> {
  reader.expectSign("(");
  if (of === "count" && (reader.takesSign("*") ? reader.takesSign(")") : reader.takesSign(")"))) {
    return { expression: null, percent: 0 };
  }
  const expression = reader.expression();
  let percent = 50;
  if (of === "pct") {
    reader.expectSign(",");
    const word = reader.take();
    if (word.kind !== "number" || word.value < 0 || word.value > 100) throw reader.error("a percentage expected", word);
    percent = word.value;
  }
  reader.expectSign(")");
  return { expression, percent };
}
