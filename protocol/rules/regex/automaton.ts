/**
 * Executes compiled patterns. One pass over the string follows all states at once, and every
 * visited state is charged to the budget.
 */

import { type Budget, spend } from '../expressions/values.ts'
import { type Instruction, type Pattern, WORD } from './pattern.ts'

/** Whether sorted ranges contain a code point. */
const inside = (ranges: readonly number[], code: number): boolean => {
  let [low, high] = [0, ranges.length / 2 - 1]
  while (low <= high) {
    const middle = (low + high) >> 1
    if (code < (ranges[2 * middle] ?? 0)) high = middle - 1
    else if (code > (ranges[2 * middle + 1] ?? 0)) low = middle + 1
    else return true
  }
  return false
}
const isWord = (code: number | undefined) => code !== undefined && inside(WORD, code)
const holds = (
  what: '^' | '$' | 'b' | 'B',
  before: number | undefined,
  after: number | undefined,
): boolean => {
  if (what === '^') return before === undefined
  if (what === '$') return after === undefined
  return (isWord(before) !== isWord(after)) === (what === 'b')
}
const consumes = (instruction: Instruction, code: number, ignoreCase: boolean): boolean => {
  if (instruction.op !== 'one') return false
  const { ranges, properties, negated } = instruction
  const has = (point: number): boolean =>
    inside(ranges, point) ||
    (properties.length > 0 &&
      properties.some(
        (property) => property.test.test(String.fromCodePoint(point)) !== property.negated,
      ))
  if (!ignoreCase) return has(code) !== negated
  const char = String.fromCodePoint(code)
  return (
    (has(code) ||
      has(char.toLowerCase().codePointAt(0) ?? code) ||
      has(char.toUpperCase().codePointAt(0) ?? code)) !== negated
  )
}
/**
 * Returns the number of units that one instruction charges to the budget. A Unicode property costs
 * more than a comparison of ranges.
 */
const costOf = (instruction: Instruction): number =>
  instruction.op === 'one' ? 1 + 4 * instruction.properties.length : 1

/**
 * Whether the pattern matches anywhere in the text.
 * @throws ExpressionError when the work exceeds the budget.
 */
export function test({ program, ignoreCase }: Pattern, text: string, budget: Budget): boolean {
  const seen = new Uint32Array(program.length)
  const stack: number[] = []
  let round = 0
  let visits = 0
  /**
   * Adds a state and all states that can be reached from it without consuming a character. Returns
   * whether one of them accepts.
   */
  const enter = (
    states: number[],
    start: number,
    before: number | undefined,
    after: number | undefined,
  ): boolean => {
    stack.push(start)
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (seen[at] === round) continue
      seen[at] = round
      const instruction = program[at]
      visits += instruction ? costOf(instruction) : 1
      if (!instruction || instruction.op === 'accept') return true
      if (instruction.op === 'one') states.push(at)
      else if (instruction.op === 'fork') stack.push(instruction.other, instruction.next)
      else if (holds(instruction.what, before, after)) stack.push(at + 1)
    }
    return false
  }
  let states: number[] = []
  let before: number | undefined
  for (let at = 0; ; ) {
    const code = text.codePointAt(at)
    round++
    const here: number[] = []
    for (const state of states) {
      if (
        before !== undefined &&
        consumes(program[state] as Instruction, before, ignoreCase) &&
        enter(here, state + 1, before, code)
      )
        return true
    }
    if (enter(here, 0, before, code)) return true
    spend(budget, 1 + visits)
    visits = 0
    if (code === undefined) return false
    states = here
    before = code
    at += code > 0xffff ? 2 : 1
  }
}
