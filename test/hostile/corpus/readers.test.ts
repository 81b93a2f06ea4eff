/**
 * The parsers of user-supplied texts in isolation. Invariants for any text: each parser returns a
 * value or reports a fault of the text, and does no more work than its budget allows. No time is
 * measured.
 */
import t from 'tap'
import { partsOf } from '../../../gateway/files/multipart.ts'
import { readYaml } from '../../../gateway/files/yaml.ts'
import { compile, ExpressionError, run } from '../../../protocol/rules/expressions/expression.ts'
import { ROOTS } from '../../../protocol/rules/expressions/scope.ts'
import { WORK_BUDGET } from '../../../protocol/rules/expressions/values.ts'
import { schemaFaults } from '../../../protocol/rules/json-schema/schema.ts'
import { checkValue } from '../../../protocol/rules/json-schema/validate.ts'
import { test as matchPattern } from '../../../protocol/rules/regex/automaton.ts'
import { compilePattern, ECMASCRIPT, MAX_PROGRAM } from '../../../protocol/rules/regex/pattern.ts'
import { latestFire, nextFire, scheduleFault } from '../../../protocol/rules/schedule.ts'
import { forms, yamls } from './documents.ts'
import { expressions, patterns, REPEATED_COMPARISON, schedules, schemas } from './texts.ts'

const shown = (text: string): string => JSON.stringify(text.slice(0, 80))
/**
 * Returns the value that a parser returns, or the fault that it throws. Any other error fails the
 * test.
 */
function outcome<T>(read: () => T): T | ExpressionError {
  try {
    return read()
  } catch (error) {
    if (error instanceof ExpressionError) return error
    throw error
  }
}
const deep = (levels: number): unknown =>
  Array.from({ length: levels }).reduce<unknown>((inner) => ({ any: [inner] }), 'end')
/** Values that are checked against schemas and read by expressions. */
const values: readonly unknown[] = [
  null,
  `${'a'.repeat(50_000)}!`,
  Array.from({ length: 2000 }, (_, n) => ({ n, text: 'a'.repeat(10) })),
  Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`a${n}`, n])),
  deep(30),
]

t.test('expressions end within their work budget', async (t) => {
  for (const text of expressions) {
    t.type(
      outcome(() => compile(text, ROOTS).ok),
      'boolean',
      shown(text),
    )
    for (const input of values) {
      const scope = {
        roots: { input, event: {}, config: {}, meta: {}, run: {}, steps: {} },
        left: WORK_BUDGET,
      }
      outcome(() => run(text, scope))
      t.ok(
        WORK_BUDGET - scope.left < 2 * WORK_BUDGET,
        `${shown(text)} took ${WORK_BUDGET - scope.left}`,
      )
    }
  }
})
t.test('an expression with too much work is stopped when its budget is used up', async (t) => {
  const list = Array.from({ length: 50_000 }, (_, n) => n)
  const scope = { roots: { input: list, event: [...list] }, left: WORK_BUDGET }
  t.match(
    outcome(() => run(REPEATED_COMPARISON, scope)),
    { message: /exceeds its computation limit/ },
  )
  t.ok(scope.left < 0)
})

t.test('patterns have bounded programs, and every step is counted', async (t) => {
  for (const source of patterns)
    for (const dialect of [undefined, ECMASCRIPT]) {
      const pattern = outcome(() => compilePattern(source, dialect))
      if (pattern instanceof ExpressionError) continue
      t.ok(pattern.program.length <= MAX_PROGRAM, shown(source))
      for (const text of ['a'.repeat(50_000), `${'a'.repeat(5000)}!`, '\ud800', '']) {
        const budget = { left: WORK_BUDGET }
        outcome(() => matchPattern(pattern, text, budget))
        const spent = WORK_BUDGET - budget.left
        t.ok(spent <= WORK_BUDGET + MAX_PROGRAM * 10, `${shown(source)} took ${spent}`)
      }
    }
})

t.test('schemas are refused or applied within their budget', async (t) => {
  const STEPS = 100_000
  for (const text of schemas) {
    // Skipped, because the gateway refuses documents of more than 64 levels before it checks a
    // schema.
    if (text.startsWith('{"not":{"not"')) continue
    const schema: unknown = JSON.parse(text)
    t.ok(Array.isArray(schemaFaults(schema, 'input_schema')), shown(text))
    for (const value of values) {
      const checked = checkValue(schema, value, 'input', STEPS)
      t.ok('unusable' in checked || Array.isArray(checked.faults), shown(text))
    }
  }
})

t.test('YAML yields a value or a fault, and aliases cannot multiply its size', async (t) => {
  for (const text of yamls) {
    const read = readYaml(text, 100_000)
    if ('fault' in read) t.type(read.fault, 'string', shown(text))
    else t.ok((JSON.stringify(read.value) ?? '').length < 100 * (text.length + 100), shown(text))
  }
})

t.test('schedules are refused or have a next time', async (t) => {
  const now = Date.UTC(2030, 0, 1)
  for (const text of schedules)
    for (const schedule of [
      { cron: text },
      { interval: text },
      { cron: '0 9 * * *', timezone: text },
    ]) {
      const fault = scheduleFault(schedule)
      if (fault) {
        t.ok(fault.message.length < 300, shown(text))
        continue
      }
      const next = nextFire(schedule, now, 0)
      t.ok(next === undefined || next > now, shown(text))
      t.ok(latestFire(schedule, 0, now, 0) <= now, shown(text))
    }
})

t.test('forms yield parts or a fault', async (t) => {
  for (const text of forms) {
    const parts = partsOf(Buffer.from(text, 'latin1'), 'x')
    t.ok(typeof parts === 'string' || parts.length <= 20, shown(text))
  }
})
