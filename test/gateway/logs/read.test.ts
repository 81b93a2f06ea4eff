/** Pages of log lines in both orders, compared with one list, and the stored form of lines. */
import fc from 'fast-check'
import t from 'tap'
import { storedLine } from '../../../gateway/logs/lines.ts'
import type { LogStore } from '../../../gateway/logs/ports.ts'
import { type LogQuestion, readLog } from '../../../gateway/logs/read.ts'
import {
  type LogFilters,
  logLevels,
  logLimits,
  type NumberedBatch,
  type RunLogLine,
} from '../../../protocol/jobs/logs.ts'

/** Creates a store in memory, whose reads return at most `size` batches. */
const storeOf = (batches: readonly NumberedBatch[], size: number) =>
  ({
    from: async (_, __, sequence) => {
      const found = batches.filter((batch) => batch.sequence >= sequence)
      return { batches: found.slice(0, size), more: found.length > size }
    },
    before: async (_, __, sequence = Number.MAX_SAFE_INTEGER) => {
      const found = batches.filter((batch) => batch.sequence < sequence)
      return { batches: found.slice(-size), more: found.length > size }
    },
  }) as Pick<LogStore, 'from' | 'before'> as LogStore

async function readAll(store: LogStore, question: LogQuestion): Promise<RunLogLine[]> {
  const all: RunLogLine[] = []
  for (let next = question, more = true; more; ) {
    const page = await readLog(store, 'prj', 'run', next)
    all.push(...page.items)
    next = { ...question, after: page.next_after }
    more = page.has_more
  }
  return all
}

const line = fc.record({
  at: fc.constant('2026-01-01T00:00:00.000Z'),
  level: fc.constantFrom(...logLevels),
  text: fc.constantFrom('Alpha', 'beta', 'ALPHABET'),
})
const stored = fc
  .array(
    fc.record({
      job_id: fc.constantFrom('job_1', 'job_2'),
      step_key: fc.constantFrom('a', 'b'),
      gap: fc.integer({ min: 1, max: 3 }),
      lines: fc.array(line, { minLength: 1, maxLength: 4 }),
    }),
    { maxLength: 30 },
  )
  .map((all) => {
    let sequence = 0
    return all.map(
      ({ gap, ...batch }): NumberedBatch => ({
        ...batch,
        attempt: 1,
        worker_instance_id: 'w',
        sequence: (sequence += gap),
      }),
    )
  })
const filters = fc.record(
  {
    step_key: fc.constantFrom('a', 'b'),
    job_id: fc.constantFrom('job_1', 'job_2'),
    level: fc.constantFrom(...logLevels),
    contains: fc.constantFrom('alpha', 'BETA'),
  },
  { requiredKeys: [] },
)

t.test('the pages of both orders contain exactly the matching lines', async () => {
  await fc.assert(
    fc.asyncProperty(
      stored,
      filters,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 7 }),
      async (batches, asked: LogFilters, size, limit) => {
        const expected = batches.flatMap(({ lines, job_id, step_key, sequence }) =>
          lines.flatMap(({ level, text }, index) =>
            (asked.step_key ?? step_key) === step_key &&
            (asked.job_id ?? job_id) === job_id &&
            logLevels.indexOf(level) >= logLevels.indexOf(asked.level ?? 'debug') &&
            text.toLowerCase().includes((asked.contains ?? '').toLowerCase())
              ? [sequence * 1000 + index]
              : [],
          ),
        )
        const store = storeOf(batches, size)
        const found = async (order: 'asc' | 'desc') =>
          (await readAll(store, { ...asked, limit, order })).map(({ sequence }) => sequence)
        const [up, down] = [await found('asc'), await found('desc')]
        return (
          JSON.stringify(up) === JSON.stringify(expected) &&
          JSON.stringify(down) === JSON.stringify(expected.reverse())
        )
      },
    ),
    { numRuns: 150 },
  )
})

t.test('a line is stored as valid text of limited size, without credentials', async (t) => {
  const mask = (text: string) => text.replaceAll(/sec_\w+/g, '***')
  const form = (raw: Parameters<typeof storedLine>[0]) => storedLine(raw, 0, mask)
  t.strictSame(form({ text: 'a \ud800 b', at: 'yesterday' }), {
    at: '1970-01-01T00:00:00.000Z',
    level: 'info',
    text: 'a \ufffd b',
  })
  t.strictSame(form({ text: 'x', at: '2026-01-01T01:00:00+01:00', level: 'warn' }), {
    at: '2026-01-01T00:00:00.000Z',
    level: 'warn',
    text: 'x',
  })
  const wide = form({ text: '€'.repeat(5000) })
  t.ok(Buffer.byteLength(wide.text) <= logLimits.text)
  t.match(wide, { truncated: true, text: /^€+…$/ })
  const hidden = form({ text: `${'a '.repeat(4090)}sec_${'s'.repeat(5000)}` })
  t.notMatch(hidden.text, /sec_/, 'a credential that is cut is not shown in part')
  t.strictSame(form({ text: '', fields: { a: ['sec_1'], sec_2: { b: 1 } } }).fields, {
    a: ['***'],
    '***': { b: 1 },
  })
  for (const fields of [{ a: 'x'.repeat(9000) }, JSON.parse('{"__proto__": 1}')])
    t.match(form({ text: 'kept', fields }), { text: 'kept', fields: undefined, truncated: true })
})
