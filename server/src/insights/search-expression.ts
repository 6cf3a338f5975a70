import { unreachable } from "../base/index.ts";
import {
  ExpressionError,
  isWordCode,
  readExpression,
  type Atom,
  type ExpressionNode,
  type Place,
} from "./expression-syntax.ts";

type Step =
  | { readonly do: "take"; readonly atom: Atom }
  /** The first is tried before the second. */
  | { readonly do: "fork"; first: number; second: number }
  | { readonly do: "go"; to: number }
  | { readonly do: "keep"; readonly slot: number }
  | { readonly do: "stand"; readonly place: Place }
  | { readonly do: "found" };

/** What a search may take is this many steps for each character. */
const stepsMax = 2000;

/** Where a group's text begins and ends; -1: it has none. Immutable. */
type Slots = readonly number[];

/**
 * A regular expression that finds what JavaScript's would, in time in proportion to the text's length and the expression's: all ways through
 * it are followed at once, character by character. Log lines come from anybody, and expressions from whoever may ask.
 */
export class SearchExpression {
  /** Of the groups, from the first on. */
  readonly names: readonly (string | null)[];
  readonly #steps: Step[] = [];
  #nodeCount = 0;

  /** Throws ExpressionError. */
  constructor(source: string) {
    const { node, names } = readExpression(source);
    this.names = names;
    this.#add({ do: "keep", slot: 0 });
    this.#compile(node);
    this.#add({ do: "keep", slot: 1 });
    this.#add({ do: "found" });
  }

  isIn(text: string): boolean {
    return this.#search(text, true) !== null;
  }

  /** The first place where it is found: the whole, then the groups; null for a group that was not come through. */
  find(text: string): readonly (string | null)[] | null {
    const slots = this.#search(text, false);
    if (slots === null) return null;
    return Array.from({ length: this.names.length + 1 }, (_, index) => {
      const [from = -1, to = -1] = [slots[2 * index], slots[2 * index + 1]];
      return from === -1 || to === -1 ? null : text.slice(from, to);
    });
  }

  #add(step: Step): number {
    if (this.#steps.length >= stepsMax)
      throw new ExpressionError("the expression is too long, its repetitions written out");
    return this.#steps.push(step) - 1;
  }

  #compile(node: ExpressionNode): void {
    // Repetitions of what is empty have no steps.
    this.#nodeCount += 1;
    if (this.#nodeCount > 4 * stepsMax)
      throw new ExpressionError("the expression is too long, its repetitions written out");
    switch (node.is) {
      case "atom":
        this.#add({ do: "take", atom: node.atom });
        return;
      case "place":
        this.#add({ do: "stand", place: node.place });
        return;
      case "sequence":
        for (const each of node.of) this.#compile(each);
        return;
      case "choice":
        return this.#compileChoice(node.of);
      case "group":
        this.#add({ do: "keep", slot: 2 * node.index });
        this.#compile(node.of);
        this.#add({ do: "keep", slot: 2 * node.index + 1 });
        return;
      case "repeat":
        for (let index = 0; index < node.least; index++) this.#compile(node.of);
        if (node.most === null) return this.#compileLoop(node.of, node.isGreedy);
        return this.#compileOptional(node.of, node.most - node.least, node.isGreedy);
      default:
        unreachable(node);
    }
  }

  #compileChoice(of: readonly ExpressionNode[]): void {
    const ends: { to: number }[] = [];
    for (const [index, each] of of.entries()) {
      if (index === of.length - 1) {
        this.#compile(each);
        continue;
      }
      const fork = { do: "fork" as const, first: 0, second: 0 };
      fork.first = this.#add(fork) + 1;
      this.#compile(each);
      const end = { do: "go" as const, to: 0 };
      fork.second = this.#add(end) + 1;
      ends.push(end);
    }
    for (const end of ends) end.to = this.#steps.length;
  }

  #compileLoop(of: ExpressionNode, isGreedy: boolean): void {
    const fork = { do: "fork" as const, first: 0, second: 0 };
    const start = this.#add(fork);
    this.#compile(of);
    this.#add({ do: "go", to: start });
    this.#branch(fork, isGreedy, start + 1, this.#steps.length);
  }

  #compileOptional(of: ExpressionNode, count: number, isGreedy: boolean): void {
    const forks: { readonly fork: { first: number; second: number }; readonly inside: number }[] = [];
    for (let index = 0; index < count; index++) {
      const fork = { do: "fork" as const, first: 0, second: 0 };
      forks.push({ fork, inside: this.#add(fork) + 1 });
      this.#compile(of);
    }
    for (const { fork, inside } of forks) this.#branch(fork, isGreedy, inside, this.#steps.length);
  }

  #branch(fork: { first: number; second: number }, isGreedy: boolean, inside: number, behind: number): void {
    fork.first = isGreedy ? inside : behind;
    fork.second = isGreedy ? behind : inside;
  }

  #search(text: string, isAnyEnough: boolean): Slots | null {
    const steps = this.#steps;
    let at = new Ways(steps.length);
    let next = new Ways(steps.length);
    const begin: Slots = isAnyEnough ? [] : Array.from({ length: 2 * this.names.length + 2 }, () => -1);
    let best: Slots | null = null;
    for (let index = 0; index <= text.length; index++) {
      // A later start is worse than every way that is under way.
      if (best === null) this.#follow(at, 0, begin, { text, index, keeps: !isAnyEnough });
      if (at.count === 0 && best !== null) return best;
      const code = index < text.length ? text.charCodeAt(index) : -1;
      for (let way = 0; way < at.count; way++) {
        const place = at.places[way] as number;
        const step = steps[place] as Step;
        if (step.do === "found") {
          if (isAnyEnough) return begin;
          best = at.slots[way] as Slots;
          // What is behind it in rank is worse.
          break;
        }
        if (step.do === "take" && code !== -1 && step.atom(code)) {
          this.#follow(next, place + 1, at.slots[way] as Slots, { text, index: index + 1, keeps: !isAnyEnough });
        }
      }
      [at, next] = [next, at];
      next.clear();
    }
    return best;
  }

  /** Adds the places that are come to from one without taking a character, the best first. */
  #follow(
    ways: Ways,
    from: number,
    begin: Slots,
    { text, index, keeps }: { text: string; index: number; keeps: boolean },
  ): void {
    const stack: { readonly place: number; readonly slots: Slots }[] = [{ place: from, slots: begin }];
    for (let one = stack.pop(); one !== undefined; one = stack.pop()) {
      const { place, slots } = one;
      if (!ways.visits(place)) continue;
      const step = this.#steps[place] as Step;
      switch (step.do) {
        case "take":
        case "found":
          ways.add(place, slots);
          break;
        case "go":
          stack.push({ place: step.to, slots });
          break;
        case "fork":
          stack.push({ place: step.second, slots }, { place: step.first, slots });
          break;
        case "keep":
          stack.push({ place: place + 1, slots: keeps ? slots.with(step.slot, index) : slots });
          break;
        case "stand":
          if (isAt(step.place, text, index)) stack.push({ place: place + 1, slots });
          break;
        default:
          unreachable(step);
      }
    }
  }
}

/** The ways through an expression that are open at a character, in the order in which they are preferred. */
class Ways {
  readonly places: Uint16Array;
  readonly slots: Slots[] = [];
  readonly #visited: Uint32Array;
  #round = 1;
  count = 0;

  constructor(stepCount: number) {
    this.places = new Uint16Array(stepCount);
    this.#visited = new Uint32Array(stepCount);
  }

  /** Whether the place is come to for the first time at this character. */
  visits(place: number): boolean {
    if (this.#visited[place] === this.#round) return false;
    this.#visited[place] = this.#round;
    return true;
  }

  add(place: number, slots: Slots): void {
    this.places[this.count] = place;
    this.slots[this.count] = slots;
    this.count += 1;
  }

  clear(): void {
    this.count = 0;
    this.#round += 1;
  }
}

function isAt(place: Place, text: string, index: number): boolean {
  switch (place) {
    case "start":
      return index === 0;
    case "end":
      return index === text.length;
    case "edge":
      return isEdge(text, index);
    case "inside":
      return !isEdge(text, index);
    default:
      return unreachable(place);
  }
}

const isEdge = (text: string, index: number) =>
  (index > 0 && isWordCode(text.charCodeAt(index - 1))) !== (index < text.length && isWordCode(text.charCodeAt(index)));
