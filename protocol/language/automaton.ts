/** Runs the program of a pattern over a text: one pass, all states at once, paying for every state visited. */
import { WORD, type Instruction, type Pattern } from './pattern.ts'
import { spend, type Budget } from './values.ts'

const inside = (ranges: readonly number[], code: number): boolean => {
  for (let i = 0; i < ranges.length; i += 2)
    if (code >= (ranges[i] ?? 0) && code <= (ranges[i + 1] ?? 0)) return true
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
  const { ranges, negated } = instruction
  if (!ignoreCase) return inside(ranges, code) !== negated
  const char = String.fromCodePoint(code)
  return (
    (inside(ranges, code) ||
      inside(ranges, char.toLowerCase().codePointAt(0) ?? code) ||
      inside(ranges, char.toUpperCase().codePointAt(0) ?? code)) !== negated
  )
}

/** Whether the pattern matches somewhere in the text. @throws ExpressionError when the work exceeds the budget. */
export function test({ program, ignoreCase }: Pattern, text: string, budget: Budget): boolean {
  const seen = new Uint32Array(program.length)
  const stack: number[] = []
  let round = 0
  let visits = 0
  /** Add a state and everything reachable without consuming; true when that accepts. */
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
      visits++
      const instruction = program[at]
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
