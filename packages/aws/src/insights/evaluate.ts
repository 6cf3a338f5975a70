import { unreachable } from "@galatea/base";
import { callFunction, toQueryNumber, toQueryText } from "./functions.ts";
import type { ArithmeticOperator, QueryComparison, QueryExpression, QueryValue } from "./query.ts";
import type { QueryRecord } from "./query-record.ts";
import { LinearTimeRegex } from "./search-expression.ts";

export type CompiledExpression = (record: QueryRecord) => QueryValue;

/** Compiles an expression to a function, which is faster than interpreting the expression for every event. */
export function compileExpression(expression: QueryExpression, nowMs: number): CompiledExpression {
  const inner = (of: QueryExpression) => compileExpression(of, nowMs);
  switch (expression.is) {
    case "value":
      return () => expression.value;
    case "duration":
      return () => expression.ms;
    case "field":
      return (record) => record.get(expression.name);
    case "not": {
      const of = inner(expression.of);
      return (record) => !isTruthy(of(record));
    }
    case "and": {
      const of = expression.of.map(inner);
      return (record) => of.every((each) => isTruthy(each(record)));
    }
    case "or": {
      const of = expression.of.map(inner);
      return (record) => of.some((each) => isTruthy(each(record)));
    }
    case "compare": {
      const [left, right] = [inner(expression.left), inner(expression.right)];
      return (record) => compareQueryValues(left(record), expression.sign, right(record));
    }
    case "compute": {
      const [left, right] = [inner(expression.left), inner(expression.right)];
      return (record) => computed(toQueryNumber(left(record)), expression.sign, toQueryNumber(right(record)));
    }
    case "in": {
      const [of, among] = [inner(expression.of), expression.among.map(inner)];
      return (record) => {
        const value = of(record);
        return among.some((each) => compareQueryValues(value, "=", each(record)));
      };
    }
    case "contains": {
      const of = inner(expression.of);
      return (record) => {
        const value = of(record);
        return value !== null && toQueryText(value).includes(expression.part);
      };
    }
    case "like": {
      const [of, search] = [inner(expression.of), new LinearTimeRegex(expression.expression)];
      return (record) => {
        const value = of(record);
        return value !== null && search.matches(toQueryText(value));
      };
    }
    case "call": {
      const of = expression.of.map(inner);
      return (record) => {
        const values = of.map((each) => each(record));
        return callFunction(expression.name, values, { timestampMs: record.timestampMs, nowMs });
      };
    }
    default:
      return unreachable(expression);
  }
}

/** Returns whether a value counts as true. */
export function isTruthy(value: QueryValue): boolean {
  return value !== null && value !== false && value !== 0 && value !== "" && value !== "0";
}

/** Compares as numbers if both values are numbers, else as texts. A missing value equals no value: `=` is false and `!=` is true. */
export function compareQueryValues(left: QueryValue, sign: QueryComparison, right: QueryValue): boolean {
  if (left === null || right === null) return sign === "!=" && left !== right;
  const order = sortOrderOf(left, right);
  switch (sign) {
    case "=":
      return order === 0;
    case "!=":
      return order !== 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
    default:
      return unreachable(sign);
  }
}

/**
 * Compares two values for a sort. Numbers precede texts, and missing values come last. Negative if `left` comes first.
 */
export function sortOrderOf(left: QueryValue, right: QueryValue): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  const [a, b] = [toQueryNumber(left), toQueryNumber(right)];
  if (a !== null && b !== null) return a < b ? -1 : Number(a > b);
  if (a !== null || b !== null) return a === null ? 1 : -1;
  const [text, other] = [toQueryText(left), toQueryText(right)];
  return text < other ? -1 : Number(text > other);
}

function computed(left: number | null, sign: ArithmeticOperator, right: number | null): number | null {
  if (left === null || right === null) return null;
  const value = resultOf(left, sign, right);
  return Number.isFinite(value) ? value : null;
}

function resultOf(left: number, sign: ArithmeticOperator, right: number): number {
  switch (sign) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return left / right;
    case "%":
      return left % right;
    case "^":
      return left ** right;
    default:
      return unreachable(sign);
  }
}
